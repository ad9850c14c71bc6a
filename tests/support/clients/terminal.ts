/** A terminal that nobody sits at, for commands that run inside the test. */
import type { Terminal } from '../../../src/commands/command.ts'

/** What the command says, on either output, goes to `lines`. */
export function quietTerminal(env: Record<string, string>, lines: string[]): Terminal {
  const say = (text: string) => void lines.push(text)
  const { promise: never } = Promise.withResolvers<void>()
  const nobody = () => Promise.reject(new Error('there is nobody to ask'))
  return {
    env,
    readFile: () => null,
    out: say,
    err: say,
    outputClosed: () => never,
    isInteractive: false,
    ask: nobody,
    nextLine: nobody,
    now: Date.now,
    pause: nobody,
    self: 'holdfast',
  }
}
