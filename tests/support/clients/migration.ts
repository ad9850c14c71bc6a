/** An account holder who moves, with the client of the reference, as the guide for migrations tells them to. */
import { expect } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { readCarWithRoot, verifyRepoCar, type VerifiedRepo } from '@atproto/repo'
import { resolverAt } from './consumer.ts'

export interface Move {
  from: AtpAgent
  /** Address of the new server. */
  to: string
  /** What the account is called there. */
  handle: string
  email: string
  password: string
  /** The code that the old server mails. */
  mailedCode(): Promise<string>
}

/** From the first call to the last. Answers the agent at the new server, where the account is active. */
export async function moveAccount({ from, to, handle, email, password, mailedCode }: Move): Promise<AtpAgent> {
  const did = from.assertDid
  const at = new AtpAgent({ service: to })
  const { data: server } = await at.com.atproto.server.describeServer()
  const { data: permit } = await from.com.atproto.server.getServiceAuth({
    aud: server.did,
    lxm: 'com.atproto.server.createAccount',
  })
  await at.com.atproto.server.createAccount(
    { did, handle, email, password },
    { encoding: 'application/json', headers: { authorization: `Bearer ${permit.token}` } },
  )
  await at.login({ identifier: did, password })
  expect(at.session?.active).toBe(false)

  const { data: car } = await from.com.atproto.sync.getRepo({ did })
  await at.com.atproto.repo.importRepo(car, { encoding: 'application/vnd.ipld.car' })
  await finishMove(from, at, mailedCode)
  return at
}

/** From the repository on, which `at` has: blobs, preferences, identity, activation. */
export async function finishMove(from: AtpAgent, at: AtpAgent, mailedCode: Move['mailedCode']): Promise<void> {
  const did = from.assertDid
  for (;;) {
    const { data: missing } = await at.com.atproto.repo.listMissingBlobs({ limit: 2 })
    if (missing.blobs.length === 0) break
    for (const { cid } of missing.blobs) {
      const { data: bytes, headers } = await from.com.atproto.sync.getBlob({ did, cid })
      await at.com.atproto.repo.uploadBlob(bytes, { encoding: headers['content-type'] })
    }
  }
  const { data: preferences } = await from.app.bsky.actor.getPreferences()
  await at.app.bsky.actor.putPreferences(preferences)

  await changeIdentity(from, at, mailedCode)

  const { data: status } = await at.com.atproto.server.checkAccountStatus()
  expect(status).toMatchObject({ activated: false, validDid: true, importedBlobs: status.expectedBlobs })
  await at.com.atproto.server.activateAccount()
  await from.com.atproto.server.deactivateAccount({})
}

/** Back to a server where the account was left behind deactivated. `mailedCode` is that of the server it comes from. */
export async function returnHome({
  from,
  to,
  mailedCode,
}: {
  from: AtpAgent
  to: AtpAgent
  mailedCode(): Promise<string>
}): Promise<void> {
  const { data: car } = await from.com.atproto.sync.getRepo({ did: from.assertDid })
  await to.com.atproto.repo.importRepo(car, { encoding: 'application/vnd.ipld.car' })
  await changeIdentity(from, to, mailedCode)
  await to.com.atproto.server.activateAccount()
  await from.com.atproto.server.deactivateAccount({})
}

/** The old server signs what the new one asks for. */
async function changeIdentity(from: AtpAgent, to: AtpAgent, mailedCode: () => Promise<string>): Promise<void> {
  await from.com.atproto.identity.requestPlcOperationSignature()
  const { data: credentials } = await to.com.atproto.identity.getRecommendedDidCredentials()
  const { data: signed } = await from.com.atproto.identity.signPlcOperation({
    token: await mailedCode(),
    ...credentials,
  })
  await to.com.atproto.identity.submitPlcOperation({ operation: signed.operation })
}

/** What an account owns, for a comparison of before and after. */
export interface Belongings {
  /** Path to CID. */
  records: Record<string, string>
  /** CID to type and size. */
  blobs: Record<string, string>
  preferences: unknown
}

export async function belongingsOf(agent: AtpAgent, plcUrl: string): Promise<Belongings> {
  const { creates } = await verifiedRepo(agent, plcUrl)
  const { data: listed } = await agent.com.atproto.sync.listBlobs({ did: agent.assertDid })
  const blobs: Record<string, string> = {}
  for (const cid of listed.cids) {
    const { data, headers } = await agent.com.atproto.sync.getBlob({ did: agent.assertDid, cid })
    blobs[cid] = `${headers['content-type']} ${data.byteLength}`
  }
  return {
    records: Object.fromEntries(
      creates.map(({ collection, rkey, cid }) => [`${collection}/${rkey}`, cid.toString()]).toSorted(),
    ),
    blobs,
    preferences: (await agent.app.bsky.actor.getPreferences()).data.preferences,
  }
}

/** The whole repository, its signature checked against the key that the directory names. */
export async function verifiedRepo(agent: AtpAgent, plcUrl: string): Promise<VerifiedRepo> {
  const did = agent.assertDid
  const { data: car } = await agent.com.atproto.sync.getRepo({ did })
  const verified = await verifyRepoCar(car, did, await resolverAt(plcUrl).did.resolveAtprotoKey(did))
  const { data: latest } = await agent.com.atproto.sync.getLatestCommit({ did })
  expect(latest).toEqual({ cid: (await readCarWithRoot(car)).root.toString(), rev: verified.commit.rev })
  return verified
}

/** A profile with a picture, posts with and without one, a follow, a record of a kind nobody knows, and preferences. */
export async function settleIn(agent: AtpAgent): Promise<void> {
  const createdAt = '2026-01-01T00:00:00.000Z'
  const repo = agent.assertDid
  const picture = async (seed: number) => (await agent.uploadBlob(png(seed), { encoding: 'image/png' })).data.blob
  await agent.com.atproto.repo.putRecord({
    repo,
    collection: 'app.bsky.actor.profile',
    rkey: 'self',
    record: { $type: 'app.bsky.actor.profile', displayName: 'Somebody', avatar: await picture(1) },
  })
  const posts: string[] = []
  for (let i = 0; i < 12; i++) posts.push((await agent.post({ text: `post ${i}`, createdAt })).uri)
  await agent.post({
    text: 'with pictures',
    createdAt,
    embed: {
      $type: 'app.bsky.embed.images',
      images: [
        { image: await picture(2), alt: '' },
        { image: await picture(3), alt: '' },
      ],
    },
  })
  await agent.deletePost(posts[3]!)
  await agent.follow('did:plc:ewvi7nxzyoun6zhxrhs64oiz')
  await agent.com.atproto.repo.createRecord({
    repo,
    collection: 'com.example.thing',
    rkey: 'one',
    record: { $type: 'com.example.thing', nested: { list: [1, null, 'x'] } },
  })
  await agent.app.bsky.actor.putPreferences({
    preferences: [
      { $type: 'app.bsky.actor.defs#adultContentPref', enabled: true },
      { $type: 'app.bsky.actor.defs#personalDetailsPref', birthDate: '1990-05-05T00:00:00.000Z' },
    ],
  })
}

/** The first bytes of a PNG, by which its type is told, and filling. */
export function png(seed: number): Uint8Array {
  const bytes = new Uint8Array(3000 + seed).fill(seed)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52])
  return bytes
}
