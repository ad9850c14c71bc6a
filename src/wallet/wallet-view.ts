/** The view of the identity that a wallet shows its owner. */
import { didWebUrl, parseDidDocument, pdsEndpoint } from '../protocol/did-document.ts'
import { PDS_SERVICE_NAME, SIGNING_KEY_NAME } from '../protocol/plc.ts'
import { fetchJson } from '../base/server-request.ts'
import type { Wallet } from './wallet.ts'

export interface RankedKey {
  key: string
  holder: 'device' | 'recovery' | 'server' | 'other'
}

export interface IdentityView {
  handle: string | null
  did: string
  server: string
  /** Whether the identity names the server of the wallet. */
  serverHere: boolean
  deviceKey: string
  repositoryKey: string | null
  shares: string | null
  /** Highest first. Empty for a did:web, which has no ranks. */
  keys: RankedKey[]
}

export async function identityView(wallet: Wallet): Promise<IdentityView> {
  const { did, deviceDid, contents } = wallet
  const common = { handle: contents.handle, did, server: contents.server, deviceKey: deviceDid }
  const url = didWebUrl(did)
  if (url !== null) {
    const document = parseDidDocument((await fetchJson(url.href, { method: 'GET' })).body, did)
    return {
      ...common,
      serverHere: document !== null && pdsEndpoint(document) === contents.server,
      repositoryKey: null,
      shares: null,
      keys: [],
    }
  }
  const { state } = await wallet.directory.head(did)
  const repositoryKey = state.verificationMethods[SIGNING_KEY_NAME] ?? null
  const holders = new Map<string | null, RankedKey['holder']>([
    [repositoryKey, 'server'],
    [contents.recoveryKey, 'recovery'],
    [deviceDid, 'device'],
  ])
  return {
    ...common,
    serverHere: state.services[PDS_SERVICE_NAME]?.endpoint === contents.server,
    repositoryKey,
    shares: contents.keychainShare === null ? null : 'one of three is in this wallet',
    keys: state.rotationKeys.map((key) => ({ key, holder: holders.get(key) ?? 'other' })),
  }
}
