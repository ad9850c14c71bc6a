/** What reader threads answer, and a machine that follows: public reads, for clients that send no credential. */
import { blobs } from './features/data/blobs/blobs-feature.ts'
import { repo } from './features/data/repo/repo-feature.ts'
import { sync } from './features/data/sync/sync-feature.ts'
import { identity } from './features/identity/identity/identity-feature.ts'
import { webDocuments } from './features/identity/web-documents/web-documents-feature.ts'
import { endpointName, type Endpoint, type Guard } from './http/endpoint.ts'

const names = [
  'com.atproto.repo.getRecord',
  'com.atproto.repo.listRecords',
  'com.atproto.sync.getRecord',
  'com.atproto.sync.getBlocks',
  'com.atproto.sync.getRepo',
  'com.atproto.sync.getCheckout',
  'com.atproto.sync.getLatestCommit',
  'com.atproto.sync.getHead',
  'com.atproto.sync.getRepoStatus',
  'com.atproto.sync.listRepos',
  'com.atproto.sync.listBlobs',
  'com.atproto.sync.getBlob',
  'com.atproto.identity.resolveHandle',
  'GET /.well-known/did.json',
  'GET /.well-known/atproto-did',
] as const

/** The documents of identities that it does not have are for the machine that serves. */
const followerNames: ReadonlySet<string> = new Set([...names, 'com.atproto.repo.describeRepo'])

/** What the guards of these endpoints say of a request without a credential: see `optionalAccess`. */
const stranger = { did: null, admin: false }

function forStrangers(endpoint: Endpoint): Endpoint {
  if (endpoint.kind !== 'query' || endpoint.spec.auth === undefined) return endpoint
  const auth: Guard<unknown> = { ...endpoint.spec.auth, check: () => stranger }
  return { ...endpoint, spec: { ...endpoint.spec, auth } }
}

export const followerEndpoints: readonly Endpoint[] = [repo, sync, identity, webDocuments, blobs]
  .flatMap(({ routes = [] }) => routes)
  .filter((endpoint) => followerNames.has(endpointName(endpoint)))
  .map(forStrangers)

const readerNames: ReadonlySet<string> = new Set(names)
export const readerEndpoints = followerEndpoints.filter((endpoint) => readerNames.has(endpointName(endpoint)))
