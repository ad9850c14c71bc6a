/** `pds`, which runs commands with the configuration of the service: it has to read the file as systemd does. */
import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-wrapper-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const settings = join(folder, 'holdfast.env')
const program = (name: string, script: string) => {
  writeFileSync(join(folder, name), script)
  chmodSync(join(folder, name), 0o755)
}
program('setpriv', '#!/bin/sh\nexec env -0\n')
const wrapper = readFileSync(join(import.meta.dir, '../../../release/files/pds'), 'utf8')
program('pds', wrapper.replaceAll('/etc/holdfast.env', settings))

/** The kinds of awk that this machine has; systems differ in which one is `awk`. */
const awks = ['awk', 'mawk', 'gawk', 'original-awk', 'busybox'].flatMap((name) => Bun.which(name) ?? [])

async function pds(text: string, awk = awks[0]!) {
  writeFileSync(settings, text)
  program('awk', `#!/bin/sh\nexec ${awk} ${awk.endsWith('busybox') ? 'awk' : ''} "$@"\n`)
  const child = Bun.spawn([join(folder, 'pds'), 'health'], {
    env: { PATH: `${folder}:${process.env['PATH']}` },
    stderr: 'pipe',
  })
  const [code, out, err] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  const all = out.split('\0').map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)])
  const variables = Object.fromEntries(all.filter(([name = '']) => name.startsWith('SERVICE_')))
  return { code, err, variables: variables as Record<string, string> }
}

test('a value has what systemd reads in it, and no part of it is run', async () => {
  const values: [written: string, read: string][] = [
    ['three or four words', 'three or four words'],
    ['touch $(touch x) `touch x`; touch x & a(b$1c\'d"e', 'touch $(touch x) `touch x`; touch x & a(b$1c\'d"e'],
    ['', ''],
    ['  spaces around  ', 'spaces around'],
    ['x # no comment', 'x # no comment'],
    ['a=b', 'a=b'],
    ["'single $x \\n'", 'single $x \\n'],
    ['"double \\"x\\" \\$x \\n"', 'double "x" $x \\n'],
    [`'it'"'"'s'`, "it's"],
    [`don't`, `don't`],
    [`'a' 'b' c'd`, `abc'd`],
    ["'two\nlines'", 'two\nlines'],
    ['a\\ b\\\\c', 'a b\\c'],
    ['con\\\ntinued', 'continued'],
    ['windows\r', 'windows'],
    ['ünïcode €', 'ünïcode €'],
  ]
  for (const awk of awks)
    for (const [written, read] of values)
      expect([awk, written, await pds(`# 'x\n; SERVICE_X=1\n\nSERVICE_A=${written}\n  SERVICE_B = b\n`, awk)]).toEqual([
        awk,
        written,
        { code: 0, err: '', variables: { SERVICE_A: read, SERVICE_B: 'b' } },
      ])
})

test('no replacement has a backslash, which awks read differently', () => {
  expect(wrapper.match(/\bg?sub\(\/.*?\/, "[^"]*\\[^n]/g)).toBeNull()
})

test('a line that systemd ignores is told by its number: it may be a secret', async () => {
  for (const line of [
    'SERVICE_ADMIN_TOKEN: secret',
    'export SERVICE_PORT=1',
    '[blobs]',
    'blobs.store = "s3"',
    'secret',
  ])
    expect([line, await pds(`# x\nSERVICE_A='a\nb'\n\n${line}\nSERVICE_B=b\n`)]).toEqual([
      line,
      { code: 1, err: `pds: ${settings}:5: systemd ignores this line: write NAME=value\n`, variables: {} },
    ])
})

test('a quote without an end is told: for systemd, the rest of the file is part of the value', async () => {
  for (const value of [`'two`, `"two\\"`, `'a' "b`])
    expect([value, await pds(`# x\nSERVICE_A=${value}\nSERVICE_B=b\n`)]).toEqual([
      value,
      {
        code: 1,
        err: `pds: ${settings}:2: the quote has no end: to systemd, all that follows is part of the value\n`,
        variables: {},
      },
    ])
})

test('the guide lets cron find it, where the package and the command of the first setup put it', () => {
  const guide = readFileSync(join(import.meta.dir, '../../../docs/backups.md'), 'utf8')
  const [, path = ''] = /^```\nPATH=(.*)\n.* root pds restore --rehearse/m.exec(guide) ?? []
  expect(path.split(':')).toEqual(expect.arrayContaining(['/usr/sbin', '/usr/local/sbin', '/usr/bin']))
})
