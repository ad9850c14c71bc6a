/** `kill -9` while an account writes in a space: what was acknowledged is there, whole, and the hash is that of it. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jsonToData } from '../../../src/protocol/data-model.ts'
import { parseSpaceCommit } from '../../../src/protocol/space-commit.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { Random } from '../../support/random.ts'
import { emptyDatabase } from '../../support/servers/postgres.ts'
import { startProgram } from '../../support/servers/program.ts'
import { hashOfSet } from '../../support/space-oracle.ts'
import { eventLoopTurns, until } from '../../support/until.ts'

const KILLS = 5
const WRITERS = 4
/** Records of a batch, which are written all or none. */
const BATCH = 3
setDefaultTimeout(120_000)

test.each(['SQLite', 'PostgreSQL'] as const)(
  'on %s, what was acknowledged outlives a kill, and a batch that was cut off is there as a whole or not at all',
  async (database) => {
    const postgres = database === 'PostgreSQL' ? await emptyDatabase() : null
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-space-kill-'))
    const port = await freePort()
    const url = `http://localhost:${port}`
    const env = {
      PORT: String(port),
      SERVICE_PUBLIC_URL: url,
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_SPACES_ENABLED: 'true',
      ...(postgres && { SERVICE_DATABASE_URL: postgres.databaseUrl }),
    }
    const random = new Random(1612)
    const acknowledged: string[] = []
    let token: string | null = null
    let place = { space: '', repo: '' }
    let batches = 0
    try {
      for (let kills = 0; kills <= KILLS; kills++) {
        await using server = await startProgram(['dev'], env, folder)
        if (token === null) {
          const alice = await createAccount({ url }, 'alice')
          token = alice.accessJwt
          place = { space: `at://${alice.did}/space/test.forum.space/a`, repo: alice.did }
        }
        const call = (method: string, init: object = {}) =>
          request(`${url}/xrpc/com.atproto.space.${method}`, { headers: bearer(token!), keepalive: false, ...init })
        if (batches > 0) {
          const query = new URLSearchParams({ ...place, limit: '1000' })
          const { records } = (await call(`listRecords?${query}`)).body
          const rkeys = new Set(records.map(({ rkey }: { rkey: string }) => rkey))
          expect(acknowledged.filter((batch) => !rkeys.has(`${batch}x0`))).toEqual([])
          for (let batch = 0; batch < batches; batch++) {
            const found = Array.from({ length: BATCH }, (_, i) => rkeys.has(`b${batch}x${i}`))
            expect([batch, new Set(found).size]).toEqual([batch, 1])
          }
          const { ops, commit } = (await call(`listRepoOps?${query}`)).body
          const elements = records.map(
            (one: Record<string, string>) => `${one['collection']}/${one['rkey']}/${one['cid']}`,
          )
          const { hash } = parseSpaceCommit(jsonToData(commit))
          expect(Buffer.from(hash).toString('hex')).toBe(hashOfSet(elements))
          expect(ops).toHaveLength(elements.length)
        }
        if (kills === KILLS) break
        let isDead = false
        const write = async (): Promise<void> => {
          while (!isDead) {
            const name = `b${batches++}`
            const writes = Array.from({ length: BATCH }, (_, i) => ({
              $type: 'com.atproto.space.applyWrites#create',
              collection: 'test.forum.note',
              rkey: `${name}x${i}`,
              value: { i },
            }))
            const { status } = await call('applyWrites', { json: { ...place, writes } })
            expect(status).toBe(200)
            acknowledged.push(name)
          }
        }
        const running = Array.from({ length: WRITERS }, write)
        const enough = acknowledged.length + 1 + random.below(30)
        await until(() => acknowledged.length >= enough)
        await eventLoopTurns(random.below(20))
        isDead = true
        server.signal('SIGKILL')
        await Promise.all([Promise.allSettled(running), server.exited])
      }
      expect(acknowledged.length).toBeGreaterThan(KILLS)
    } finally {
      rmSync(folder, { recursive: true, force: true })
      await postgres?.drop()
    }
  },
)
