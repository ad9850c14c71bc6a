import { describe, expect, test } from 'bun:test'
import { createLog } from './log.ts'
import type { LogLevel } from './log-line.ts'
import { inRequest } from './request-scope.ts'
import { Secret } from '../../base/secret.ts'

function recorded(format: 'text' | 'json', level: LogLevel = 'debug') {
  const lines: string[] = []
  // Lines must be bounded and clean whatever they are given, so here they are given anything.
  const log = createLog({
    format,
    level,
    now: () => 1_700_000_000_000,
    write: (line) => void lines.push(line),
  }) as unknown as Record<LogLevel, (message: string, fields?: object) => void>
  return { lines, log }
}

test('people read time, level, target, message and fields on one line', () => {
  const { lines, log } = recorded('text')
  inRequest(
    {
      requestId: 'r1',
      client: { address: '192.0.2.1', network: '192.0.2.0/24', provider: '192.0.0.0/16' },
      resumed: () => undefined,
    },
    () => log.info('commit', { did: 'did:plc:a', seq: 5, path: 'a b', handle: null }),
  )
  expect(lines).toEqual(['2023-11-14T22:13:20.000Z INFO  holdfast: commit requestId=r1 did=did:plc:a seq=5 path="a b"'])
})

test('machines read one object per line', () => {
  const { lines, log } = recorded('json')
  log.warn('slow\nquery', { tookMs: 12, level: 'forged', nested: { ids: [1n] } })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('\n')
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    timestamp: '2023-11-14T22:13:20.000Z',
    level: 'warn',
    target: 'holdfast',
    message: 'slow\nquery',
    tookMs: 12,
    nested: { ids: ['1'] },
  })
})

test('what is below the level is not written', () => {
  const { lines, log } = recorded('text', 'warn')
  expect(createLog({ format: 'text', level: 'warn', now: Date.now, write: () => undefined }).writes('info')).toBe(false)
  log.debug('a')
  log.info('b')
  log.warn('c')
  log.error('d')
  expect(lines).toHaveLength(2)
})

describe.each(['text', 'json'] as const)('in %s', (format) => {
  test('secrets are not written, whoever passes them', () => {
    const { lines, log } = recorded(format)
    log.info('sign-in', {
      adminToken: new Secret('hunter2'),
      password: 'hunter2',
      headers: { authorization: 'Bearer hunter2', cookie: 'hunter2' },
      refresh_token: 'hunter2',
      inviteCode: 'hunter2',
      key: new Uint8Array([1, 2, 3]),
    })
    expect(lines.join()).not.toContain('hunter2')
    expect(lines.join()).toContain('[3 bytes]')
  })

  test('no field can pass for a line of the log', () => {
    const { lines, log } = recorded(format)
    log.info('uploaded', { name: 'x\n2023-11-14T22:13:20.000Z ERROR forged', handle: 'a\r\u001b[31mb' })
    expect(lines.join('\n')).not.toMatch(/^2023\S* ERROR/m)
    expect(lines.join()).not.toContain('\r')
    expect(lines.join()).not.toContain('\u001b')
  })

  test('no field moves the cursor, hides text or turns its direction', () => {
    const { lines, log } = recorded(format)
    const name = 'a\u202Eb\u2066c\u200Dd\u009B31me\u007Ff\u2028g'
    for (const text of [name, `${name} h`, `${name}\nh`]) log.info(name, { name: text })
    expect(lines.join('')).not.toMatch(/[^\P{Cc}\n]|[\p{Cf}\u2028]/u)
    expect(lines[0]).toContain('a\\u202eb\\u2066c\\u200dd\\u009b31me\\u007ff\\u2028g')
    if (format === 'json') expect(JSON.parse(lines[2]!)).toMatchObject({ message: name, name: `${name}\nh` })
  })

  test('errors carry their stack and cause', () => {
    const { lines, log } = recorded(format)
    log.error('it broke', { error: new Error('outer', { cause: new Error('inner') }) })
    expect(lines.join()).toContain('log.test.ts')
    expect(lines.join()).toContain('outer')
    expect(lines.join()).toContain('inner')
  })

  test('a value that refers to itself is cut', () => {
    const { lines, log } = recorded(format)
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    log.info('round', { circle, nothing: undefined, when: new Date(Number.NaN) })
    expect(lines).toHaveLength(1)
  })
})
