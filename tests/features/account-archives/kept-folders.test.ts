/** The folders of archives that are made regularly: each account has its own, whatever its DID is. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'bun:test'
import { keepArchive, keptArchives } from '../../../src/features/data/account-archives/kept-archives.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { begin, forCeremonies, sendDid, signingKeyFor } from '../../support/clients/ceremony.ts'
import { webDocument } from '../../support/clients/web-holder.ts'
import { useWorld } from '../../support/world.ts'

const HOST = 'people.web.test'
const folder = mkdtempSync(join(tmpdir(), 'archives-'))
afterAll(() => rmSync(folder, { recursive: true }))
const { pds, web } = useWorld({
  web: [HOST],
  config: { ...forCeremonies, accounts: { passwordOptional: true }, archives: { folder, keep: 2 } },
})

async function enter(name: string, path: string): Promise<Did> {
  const wallet = await begin(pds, name)
  const did = `did:web:${HOST}:${path}` as Did
  const { keyId } = (await signingKeyFor(pds, wallet)).body
  const keys = { device: wallet.device.did, atproto: keyId }
  const text = JSON.stringify(webDocument({ url: pds.ctx.config.publicUrl }, did, wallet.handle, keys))
  web.publish(HOST, `/${path.replaceAll(':', '/')}/did.json`, text)
  const sent = { rotationKeyPublic: wallet.device.did, didWebDocument: text, recoveryKey: null, escrowShare: null }
  const { status, body } = await sendDid(pds, wallet, sent)
  expect({ status, body }).toMatchObject({ status: 200, body: { did } })
  return did
}

test('an account whose DID differs in punctuation alone does not see the archives of another', async () => {
  const [alice, other] = [await enter('alice', 'users:alice'), await enter('carl', 'users_alice')]
  await keepArchive(pds.ctx, folder, alice, new AbortController().signal)
  expect((await keptArchives(pds.ctx, alice))!.archives).toHaveLength(1)
  expect((await keptArchives(pds.ctx, other))!.archives).toEqual([])
})
