/** What a connection pooler in front of PostgreSQL is recognised by. */
import { expect, test } from 'bun:test'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { thrownBy } from '../../../tests/support/thrown.ts'
import { openPostgres, requireSessions } from './postgres.ts'

/** A connection that keeps what is set in the given session. */
const connectionOf = (session: { name?: string }) => ({
  unsafe(text: string) {
    const [, name] = /set_config\('holdfast.connection', '(\d)'/.exec(text) ?? []
    if (name !== undefined) session.name = name
    return Promise.resolve([{ name: session.name }]) as never
  },
})

test('connections that share a session are told from those that have their own', async () => {
  await requireSessions(connectionOf({}), connectionOf({}))
  const shared = {}
  expect(await thrownBy(requireSessions(connectionOf(shared), connectionOf(shared)))).toThrow('pooler')
})

test('a pooler that refuses the settings of a connection is named', async () => {
  // As PgBouncer does: an ErrorResponse to the first message.
  const fields = ['SFATAL', 'C08P01', 'Munsupported startup parameter: tcp_keepalives_idle'].join('\0')
  const body = Buffer.from(`${fields}\0\0`)
  const head = Buffer.from([0x45, 0, 0, 0, 0])
  head.writeInt32BE(body.byteLength + 4, 1)
  const pooler = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(Buffer.concat([head, body])))
  })
  await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve))
  const { port } = pooler.address() as AddressInfo
  try {
    expect(await thrownBy(openPostgres({ url: `postgres://a@127.0.0.1:${port}/b` }))).toThrow('pooler')
  } finally {
    await new Promise<void>((resolve) => pooler.close(() => resolve()))
  }
})
