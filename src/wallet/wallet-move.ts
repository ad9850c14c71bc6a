/**
 * Moving an account to another server. The wallet signs the operation that names the new server. The old server hands
 * out the data, and a token that proves to the new server that the account is coming.
 *
 * Each step can be repeated, and the account stays active at the old server until the new one has everything.
 */
import { isDeepStrictEqual } from 'node:util'
import { OperatorError } from '../base/operator-error.ts'
import { PDS_SERVICE_NAME, SIGNING_KEY_NAME, withHandle, type Operation, type PlcService } from '../protocol/plc.ts'
import type { Handle } from '../protocol/identifiers.ts'
import type { Move, StoredSession } from './wallet-contents.ts'
import { ownHead, renewShares, signedChange } from './wallet-operations.ts'
import { NoAnswer, ServerRefusal, textOf } from '../base/server-request.ts'
import { WalletServer } from './wallet-server.ts'
import { refreshSession, withFullAccess } from './wallet-sessions.ts'
import type { Wallet } from './wallet.ts'

const CREATE_ACCOUNT = 'com.atproto.server.createAccount'
const BLOBS_IN_A_PAGE = 500

export interface Moved {
  /** Blobs that the old server did not have. */
  lostBlobs: number
  /** Why the new server did not take its share; null if it did. */
  fault: OperatorError | null
}

export interface WantedMove {
  /** Origin of the new server. */
  to: string
  handle: string
  email: string
  inviteCode: string | null
  /** Password of the account at the new server; null for none. */
  password: string | null
}

/** Create the account at the new server, where it is not active yet. May be repeated with the same input. */
export async function beginMove(wallet: Wallet, wanted: WantedMove): Promise<void> {
  const { to, handle } = wanted
  if (to === wallet.server.url) throw new OperatorError(`the account is already at ${to}`)
  await ownHead(wallet)
  const session = (await sessionOfReturn(wallet, to)) ?? (await makeAccount(wallet, wanted))
  await wallet.update({ unfinished: { what: 'move', to, handle, session, operation: null } })
}

/**
 * Returns a session of an account that comes back to a server, or null: the account is still there, deactivated, and a
 * stored session from that time opens it.
 */
async function sessionOfReturn({ contents }: Wallet, to: string): Promise<StoredSession | null> {
  const before = contents.elsewhere[to]?.session
  return before ? refreshSession(new WalletServer(to, contents.directory), before) : null
}

async function makeAccount(
  wallet: Wallet,
  { to, handle, email, inviteCode, password }: WantedMove,
): Promise<StoredSession> {
  const target = new WalletServer(to, wallet.contents.directory)
  const { did: aud } = await target.describe()
  const permit = await withFullAccess(wallet, (token) =>
    wallet.server.get('/xrpc/com.atproto.server.getServiceAuth', { token, query: { aud, lxm: CREATE_ACCOUNT } }),
  )
  const json = {
    did: wallet.did,
    handle,
    email,
    ...(password === null ? {} : { password }),
    ...(inviteCode === null ? {} : { inviteCode }),
  }
  const answer = await target.post(`/xrpc/${CREATE_ACCOUNT}`, { token: textOf(permit, 'token'), json })
  if (answer['did'] !== wallet.did) throw new NoAnswer('the new server created a different account')
  return { accessJwt: textOf(answer, 'accessJwt'), refreshJwt: textOf(answer, 'refreshJwt') }
}

/** Continue a move until the account is active at the new server. May be repeated after any failure. */
export async function finishMove(wallet: Wallet): Promise<Moved> {
  const to = new WalletServer(moveOf(wallet).to, wallet.contents.directory)
  const token = await tokenAt(wallet, to)
  const lostBlobs = moveOf(wallet).operation === null ? await copyEverything(wallet, to, token) : 0
  await pointTo(wallet, to, token)
  await to.post('/xrpc/com.atproto.server.activateAccount', { token })
  await leave(wallet)
  const { capabilities } = await wallet.server.describe()
  // New shares make the old server's share useless.
  return { lostBlobs, fault: capabilities.has('escrow') ? await renewShares(wallet) : null }
}

function moveOf({ contents: { unfinished } }: Wallet): Move {
  if (unfinished?.what !== 'move') throw new OperatorError('no move is in progress in this wallet')
  return unfinished
}

/** Returns an access token at the new server. */
async function tokenAt(wallet: Wallet, to: WalletServer): Promise<string> {
  const session = await refreshSession(to, moveOf(wallet).session)
  if (session === null) throw new OperatorError(`the session at ${to.url} has ended; sign in there to continue`)
  await wallet.update({ unfinished: { ...moveOf(wallet), session } })
  return session.accessJwt
}

/** Returns how many blobs the old server did not have. */
async function copyEverything(wallet: Wallet, to: WalletServer, token: string): Promise<number> {
  const { did, server } = wallet
  const repo = await server.download('/xrpc/com.atproto.sync.getRepo', { did })
  if (repo === null) throw new NoAnswer('the server does not return the repository')
  await to.post('/xrpc/com.atproto.repo.importRepo', { token, content: { ...repo, type: 'application/vnd.ipld.car' } })
  const lostBlobs = await copyBlobs(wallet, to, token)
  const { preferences } = await withFullAccess(wallet, (own) =>
    server.get('/xrpc/app.bsky.actor.getPreferences', { token: own }),
  )
  if (Array.isArray(preferences)) await to.post('/xrpc/app.bsky.actor.putPreferences', { token, json: { preferences } })
  return lostBlobs
}

async function copyBlobs({ did, server }: Wallet, to: WalletServer, token: string): Promise<number> {
  let lost = 0
  for (let cursor: string | null = null; ;) {
    const query = { limit: String(BLOBS_IN_A_PAGE), ...(cursor === null ? {} : { cursor }) }
    const page = await to.get('/xrpc/com.atproto.repo.listMissingBlobs', { token, query })
    const blobs = Array.isArray(page['blobs']) ? (page['blobs'] as { cid?: unknown }[]) : []
    for (const { cid } of blobs) {
      const content = await server.download('/xrpc/com.atproto.sync.getBlob', { did, cid: String(cid) })
      if (content === null) lost++
      else await to.post('/xrpc/com.atproto.repo.uploadBlob', { token, content })
    }
    const next = page['cursor']
    if (typeof next !== 'string' || next === cursor) return lost
    cursor = next
  }
}

/** Name the new server in the identity. */
async function pointTo(wallet: Wallet, to: WalletServer, token: string): Promise<void> {
  const operation = moveOf(wallet).operation ?? (await operationOfMove(wallet, to, token))
  await wallet.update({ unfinished: { ...moveOf(wallet), operation } })
  const refused = await wallet.directory.submit(wallet.did, operation)
  if (refused === null) return
  await wallet.update({ unfinished: { ...moveOf(wallet), operation: null } })
  throw new OperatorError(
    `the directory refuses the change, and the account is still at ${wallet.server.url}: ${refused}`,
  )
}

interface Credentials {
  rotationKeys: readonly string[]
  verificationMethods: Record<string, string>
  services: Record<string, PlcService>
}

async function operationOfMove(wallet: Wallet, to: WalletServer, token: string): Promise<Operation> {
  const recommended = await recommendedBy(to, token)
  const { verificationMethods, services } = recommended
  const before = await withFullAccess(wallet, (own) => recommendedBy(wallet.server, own))
  const head = await ownHead(wallet)
  const { state } = head
  const surplus = [
    ...changedNames(state.verificationMethods, verificationMethods, SIGNING_KEY_NAME),
    ...changedNames(state.services, services, PDS_SERVICE_NAME),
  ]
  if (surplus.length > 0)
    throw new OperatorError(
      `the new server requests changes to parts of the identity that are not its own (${surplus.join(', ')})`,
    )
  if (services[PDS_SERVICE_NAME]?.endpoint !== to.url || verificationMethods[SIGNING_KEY_NAME] === undefined)
    throw new OperatorError(`${to.url} does not name itself as the server of the account`)
  const mine = [wallet.deviceDid, wallet.contents.recoveryKey]
  const kept = state.rotationKeys.filter((key) => mine.includes(key) || !before.rotationKeys.includes(key))
  const changes = {
    rotationKeys: [...new Set([...kept, ...recommended.rotationKeys])],
    alsoKnownAs: withHandle(state.alsoKnownAs, moveOf(wallet).handle as Handle),
    verificationMethods: { ...state.verificationMethods, ...verificationMethods },
    services: { ...state.services, ...services },
  }
  return signedChange(head, changes, wallet.deviceKey)
}

/** Names of entries that the server would change, except for its own entry. */
const changedNames = (now: Record<string, unknown>, wanted: Record<string, unknown>, own: string): string[] =>
  Object.keys(wanted).filter((name) => name !== own && !isDeepStrictEqual(wanted[name], now[name]))

async function recommendedBy(server: WalletServer, token: string): Promise<Credentials> {
  const answer = await server.get('/xrpc/com.atproto.identity.getRecommendedDidCredentials', { token })
  const { rotationKeys, verificationMethods, services } = answer as Partial<Credentials>
  if (!Array.isArray(rotationKeys) || !verificationMethods || !services)
    throw new NoAnswer(`${server.url} does not say what the identity needs`)
  return { rotationKeys, verificationMethods, services }
}

/** Deactivate the account at the old server, and keep the sessions that open it there. */
async function leave(wallet: Wallet): Promise<void> {
  const { handle, to, session } = moveOf(wallet)
  try {
    await withFullAccess(wallet, (token) =>
      wallet.server.post('/xrpc/com.atproto.server.deactivateAccount', { token, json: {} }),
    )
  } catch (error) {
    // The account has moved even if the old server refuses: its sessions may have ended when the identity stopped
    // naming the key that the old server knew.
    if (!(error instanceof ServerRefusal)) throw error
  }
  const { server, walletSession, session: before, elsewhere } = wallet.contents
  await wallet.update({
    server: to,
    handle,
    session,
    walletSession: elsewhere[to]?.walletSession ?? null,
    elsewhere: { ...elsewhere, [server]: { session: before, walletSession } },
    unfinished: null,
  })
}
