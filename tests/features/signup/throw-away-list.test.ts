/** The list of hosts of disposable addresses, where it cannot be read at first. */
import { expect, test } from 'bun:test'
import { exhaustDescriptors } from '../../support/faults/process-limits.ts'

const SCRIPT = `
import { isThrowAway } from './src/features/identity/addresses/throw-away-hosts.ts'
console.log('ready')
for await (const address of console) console.log(await isThrowAway(address).catch((error) => error.code))`

test('a list that could not be read is read by the next who needs it', async () => {
  await using program = Bun.spawn([process.execPath, '-e', SCRIPT], {
    cwd: `${import.meta.dir}/../../..`,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const answers = program.stdout.pipeThrough(new TextDecoderStream()).getReader()
  const answer = async () => (await answers.read()).value?.trim()
  const ask = async () => {
    program.stdin.write('a@mailinator.com\n')
    await program.stdin.flush()
    return answer()
  }
  expect(await answer()).toBe('ready')
  const lift = exhaustDescriptors(program.pid)
  expect(await ask()).toBe('EMFILE')
  lift()
  expect(await ask()).toBe('true')
  await program.stdin.end()
})
