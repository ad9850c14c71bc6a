/** The network's own OAuth client, as it comes out of its package. */
import {
  type JoseKey,
  type Keyset,
  NodeOAuthClient,
  type NodeSavedSession,
  type NodeSavedState,
  requestLocalLock,
} from '@atproto/oauth-client-node'
import { buildAtprotoLoopbackClientMetadata } from '@atproto/oauth-types'

function store<Value>() {
  const kept = new Map<string, Value>()
  return {
    kept,
    get: async (key: string) => kept.get(key),
    set: async (key: string, value: Value) => void kept.set(key, value),
    del: async (key: string) => void kept.delete(key),
  }
}

export interface StandardClient {
  client: NodeOAuthClient
  sessions: ReturnType<typeof store<NodeSavedSession>>
}

type Metadata = ConstructorParameters<typeof NodeOAuthClient>[0]['clientMetadata']

/** `plcUrl` is the directory: that of the server itself, if it keeps one. */
export function standardClient(
  { url, plcUrl = url }: { url: string; plcUrl?: string },
  clientMetadata: Metadata,
  keyset?: Keyset | JoseKey[],
): StandardClient {
  const sessions = store<NodeSavedSession>()
  const client = new NodeOAuthClient({
    clientMetadata,
    keyset,
    stateStore: store<NodeSavedState>(),
    sessionStore: sessions,
    handleResolver: url,
    plcDirectoryUrl: plcUrl,
    allowHttp: true,
    requestLock: requestLocalLock,
  })
  return { client, sessions }
}

/** A public client on this machine. */
export const loopbackClient = (server: { url: string; plcUrl?: string }): StandardClient =>
  standardClient(
    server,
    buildAtprotoLoopbackClientMetadata({
      scope: 'atproto transition:generic',
      redirect_uris: ['http://127.0.0.1:9/callback'],
    }),
  )
