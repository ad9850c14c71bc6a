/** Damage of repositories in spaces: the running check finds it, and says so without naming the space. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { Stored } from '../../support/stored-blobs.ts'
import { useWorld } from '../../support/world.ts'

// A round of the check looks at all accounts.
setDefaultTimeout(60_000)

const ROUND_SECS = 3600
const NOTE = 'test.forum.note'
const { pds } = useWorld({
  config: { spaces: { enabled: true }, integrity: { roundSecs: ROUND_SECS, cpuPercent: 100 } },
})

interface View {
  round: { endedAt: string | null }
  damaged: { did: string; faults: string[] }[]
}
const view = async () => (await request(`${pds.url}/v1/admin/integrity`, { headers: bearer(ADMIN_TOKEN) })).body as View

async function faultsOf({ did }: TestAccount): Promise<string[]> {
  pds.clock.advance({ secs: ROUND_SECS })
  do await pds.runSweep('integrity')
  while ((await view()).round.endedAt === null)
  return (await view()).damaged.find((repo) => repo.did === did)?.faults ?? []
}

let accounts = 0
/** An account with 120 records in a space, one of them with a blob. In development, a session may write them. */
async function member() {
  const account = await createAccount(pds, `member${accounts++}`)
  const place = { space: `at://${account.did}/space/test.forum.space/hidden`, repo: account.did }
  const { body } = await account.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(`file of ${account.did}`),
  })
  const writes = Array.from({ length: 120 }, (_, i) => ({
    $type: 'com.atproto.space.applyWrites#create',
    collection: NOTE,
    rkey: `note${i}`,
    value: i === 7 ? { file: body.blob } : { text: `note ${i}` },
  }))
  expect((await account.call('com.atproto.space.applyWrites', { json: { ...place, writes } })).status).toBe(200)
  const [{ id }] = (await pds.rows('space_repo', { did: account.did }, ['id'])) as [{ id: number }]
  return { account, id, cid: body.blob.ref.$link as string }
}
type Member = Awaited<ReturnType<typeof member>>

const at = (id: number, name: string) => ({ space_repo_id: id, path: `${NOTE}/${name}` })

const damages: [string, (member: Member) => Promise<void>, RegExp][] = [
  [
    'a lost record',
    ({ id }) => pds.lose('space_record', at(id, 'note3')),
    /119 records, and its row says 120.*set hash/,
  ],
  [
    'a changed record',
    ({ id }) => pds.damage('space_record', at(id, 'note3'), { value: new Uint8Array([0xa0]) }),
    /block of a record has another CID/,
  ],
  [
    'a record under another key',
    ({ id }) => pds.damage('space_record', at(id, 'note3'), { path: `${NOTE}/other` }),
    /set hash is not that of its records/,
  ],
  [
    'a wrong number',
    ({ id }) => pds.damage('space_repo', { id }, { record_count: 7 }),
    /120 records, and its row says 7/,
  ],
  [
    'a bit in the state of the hash',
    ({ id }) => pds.damage('space_repo', { id }, { state: new Uint8Array(2048) }),
    /set hash is not that of its records/,
  ],
  [
    'a lost reference to a blob',
    ({ account: { did }, cid }) => pds.lose('space_blob_reference', { did, cid }),
    /blob references of a record are not/,
  ],
  [
    'a reference of another record',
    ({ account: { did }, cid }) => pds.damage('space_blob_reference', { did, cid }, { record: `${NOTE}/note8` }),
    /blob references of a record are not/,
  ],
  [
    'a blob whose bytes are lost',
    async ({ cid }) => {
      new Stored(pds).delete(cid)
      await pds.runSweep('blob-scrub')
    },
    /bytes of a blob in a space are missing/,
  ],
]

test.each(damages)('%s is found', async (_, damage, found) => {
  const one = await member()
  expect(await faultsOfRepo(pds.ctx, one.account.did as Did)).toEqual([])
  await damage(one)
  const faults = (await faultsOf(one.account)).join('; ')
  expect(faults).toMatch(found)
  for (const name of ['hidden', 'note3', 'forum', one.cid]) expect(faults).not.toContain(name)
})
