/**
 * Creates an account whose keys the wallet holds: in a ceremony, which a claim code opens, or, for a did:plc at a
 * server that is open to everyone, with a sign-up that brings the identity.
 *
 * The wallet stores everything before sending it, so that both ways can be repeated after a lost answer or a killed
 * process: the server returns the same repository key again, and accepts the same identity once.
 */
import { isDeepStrictEqual } from 'node:util'
import { OperatorError } from '../base/operator-error.ts'
import { didWebUrl, multikeyMethod } from '../protocol/did-document.ts'
import { parseHandle, type Did, type Handle } from '../protocol/identifiers.ts'
import { formatMultikey, parseDidKey } from '../protocol/keys.ts'
import { genesisDid, genesisOperation, PDS_SERVICE_NAME, SIGNING_KEY_NAME, signOperation } from '../protocol/plc.ts'
import { newShares } from './recovery-seed.ts'
import type { Creation, NewIdentity, PlcIdentity, WalletContents } from './wallet-contents.ts'
import { finishPending, renewShares } from './wallet-operations.ts'
import { NoAnswer, ServerRefusal, textOf } from '../base/server-request.ts'
import { asOwner, signIn } from './wallet-sessions.ts'
import { devicePlatform, type Wallet } from './wallet.ts'

export type Wanted = Omit<Creation, 'what' | 'identity'>

/**
 * `publish` is the document that its owner has to publish at the URL of the DID before the ceremony can continue.
 * `fault` says why the server did not take its share; null if it did.
 */
export type CreationOutcome = { done: true; fault: OperatorError | null } | { done: false; publish: string }

/**
 * Whether the server requires a code for such an account. For a did:web it always does, because only the ceremony
 * accepts one.
 */
export const requiresCode = async (wallet: Wallet, webDid: string | null): Promise<boolean> =>
  webDid !== null || (await wallet.server.describe()).requiresCode

/** Begin the ceremony, in a wallet that has no identity. Nothing is sent if the server cannot make such an account. */
export async function beginCreation(
  wallet: Wallet,
  wanted: Wanted,
  { hasPassword }: { hasPassword: boolean },
): Promise<void> {
  const { capabilities, availableUserDomains } = await wallet.server.need(
    'createCeremony',
    'creating an identity with a key of your own',
  )
  if (!hasPassword && !capabilities.has('optionalPassword'))
    throw new OperatorError(
      `${wallet.server.url} does not create accounts without a password: give one with --password`,
    )
  const handle = parseHandle(wanted.handle)
  if (handle === null)
    throw new OperatorError(`${wanted.handle} is not a handle; one here ends in ${availableUserDomains.join(' or ')}`)
  if (wanted.webDid !== null && didWebUrl(wanted.webDid as Did) === null)
    throw new OperatorError(`${wanted.webDid} is not a did:web`)
  const creation: Creation = { ...wanted, what: 'creation', handle, identity: null }
  // With the same input as before, continue with the same identity, which the server may already know.
  const { unfinished } = wallet.contents
  if (unfinished?.what === 'creation' && isDeepStrictEqual({ ...unfinished, identity: null }, creation)) return
  await wallet.update({ did: null, unfinished: creation })
}

/** Continue the creation that was begun. `password` is null for an account without one. */
export async function finishCreation(wallet: Wallet, password: string | null): Promise<CreationOutcome> {
  const creation = creationOf(wallet)
  const { claimCode } = creation
  return claimCode === null
    ? finishSignUp(wallet, creation, password)
    : finishCeremony(wallet, { ...creation, claimCode }, password)
}

type Claimed = Creation & { claimCode: string }

async function finishCeremony(wallet: Wallet, begun: Claimed, password: string | null): Promise<CreationOutcome> {
  let creation = begun
  let { walletSession } = wallet.contents
  const pending = await enter(wallet, creation)
  if (pending !== null) {
    if (creation.identity?.repoKey !== pending.repoKey) {
      const { identity, shares } = newIdentity(wallet, creation, pending.repoKey)
      creation = { ...creation, identity }
      await wallet.update({ did: didOf(identity), unfinished: creation, ...shares })
      if (identity.method === 'web') return { done: false, publish: identity.document }
    }
    walletSession = await postIdentity(wallet, creation.identity!, pending.token, password)
  }
  try {
    await takeHandle(wallet, walletSession, creation.handle)
    // Check the directory, because a server may claim that an identity exists although the directory does not know it.
    if (creation.identity?.method === 'plc') await wallet.directory.head(wallet.did)
  } catch (error) {
    await wallet.update({ walletSession })
    throw error
  }
  await wallet.update({ handle: creation.handle, walletSession, unfinished: null })
  return { done: true, fault: null }
}

async function finishSignUp(wallet: Wallet, creation: Creation, password: string | null): Promise<CreationOutcome> {
  const identity = creation.identity ?? (await reservedIdentity(wallet, creation))
  if (identity.method !== 'plc') throw new OperatorError('a did:web requires a claim code: add --code')
  await signUp(wallet, creation, identity, password)
  await wallet.directory.head(wallet.did)
  await wallet.update({ handle: creation.handle, unfinished: { what: 'deposit', escrowShare: identity.escrowShare } })
  return { done: true, fault: (await finishPending(wallet)).fault }
}

/** Returns a new identity with a repository key that the server reserves for it. */
async function reservedIdentity(wallet: Wallet, creation: Creation): Promise<NewIdentity> {
  const repoKey = textOf(
    await wallet.server.post('/xrpc/com.atproto.server.reserveSigningKey', { json: {} }),
    'signingKey',
  )
  if (parseDidKey(repoKey) === null) throw new NoAnswer('the server returned no key')
  const { identity, shares } = newIdentity(wallet, creation, repoKey)
  await wallet.update({ did: didOf(identity), unfinished: { ...creation, identity }, ...shares })
  return identity
}

/** Sign up, unless an earlier try has already created the account. */
async function signUp(
  wallet: Wallet,
  creation: Creation,
  { operation }: PlcIdentity,
  password: string | null,
): Promise<void> {
  const { handle, email } = creation
  const json = { handle, email, plcOp: operation, ...(password === null ? {} : { password }) }
  try {
    const answer = await wallet.server.post('/xrpc/com.atproto.server.createAccount', { json })
    if (answer['did'] !== wallet.did)
      throw new OperatorError(`the server created the account with ${String(answer['did'])} instead of ${wallet.did}`)
    await wallet.update({
      session: { accessJwt: textOf(answer, 'accessJwt'), refreshJwt: textOf(answer, 'refreshJwt') },
    })
  } catch (error) {
    const isUnknown =
      error instanceof NoAnswer || (error instanceof ServerRefusal && [400, 401, 409].includes(error.status))
    if (isUnknown && (await isMade(wallet))) return
    // The reservation of the key may have expired, so the next try begins with another key.
    if (error instanceof ServerRefusal && error.code === 'IncompatibleDidDoc')
      await wallet.update({ did: null, unfinished: { ...creation, identity: null } })
    throw error
  }
}

function creationOf({ contents: { unfinished } }: Wallet): Creation {
  if (unfinished?.what !== 'creation') throw new OperatorError('no ceremony is in progress in this wallet')
  return unfinished
}

const didOf = (identity: NewIdentity): string =>
  identity.method === 'web' ? identity.did : genesisDid(identity.operation)

/**
 * Redeem the claim code. Returns the token of the pending account and its repository key; null if an earlier try has
 * created the account.
 */
async function enter(
  wallet: Wallet,
  { email, handle, claimCode, identity }: Claimed,
): Promise<{ token: string; repoKey: string } | null> {
  try {
    const devicePublicKey = formatMultikey(wallet.deviceKey.publicKey)
    const json = { email, handle, claimCode, devicePublicKey, platform: devicePlatform() }
    const account = await wallet.server.post('/v1/accounts/mobile', { json })
    if (account['nextStep'] !== 'did_creation')
      throw new NoAnswer('the server requests a step that this wallet does not support')
    await checkAddress(wallet, textOf(account, 'deviceId'), textOf(account, 'deviceToken'))
    const token = textOf(account, 'sessionToken')
    const repoKey = textOf(await wallet.server.get('/v1/repo-signing-key', { token }), 'keyId')
    if (parseDidKey(repoKey) === null) throw new NoAnswer('the server returned no key')
    return { token, repoKey }
  } catch (error) {
    const isUsed = error instanceof ServerRefusal && error.status === 409
    if (isUsed && identity !== null && (await isMade(wallet))) return null
    throw error
  }
}

/** Check that the server URL that the identity will name is the one that the person chose. */
async function checkAddress(wallet: Wallet, deviceId: string, token: string): Promise<void> {
  const pdsUrl = textOf(await wallet.server.get(`/v1/devices/${deviceId}/pds`, { token }), 'pdsUrl')
  if (pdsUrl !== wallet.server.url)
    throw new OperatorError(`${wallet.server.url} names itself ${pdsUrl}: use that URL as --server`)
}

/** Whether the account exists, so that its key can sign in. */
async function isMade(wallet: Wallet): Promise<boolean> {
  if (wallet.contents.did === null) return false
  try {
    await signIn(wallet)
    return true
  } catch (error) {
    if (error instanceof ServerRefusal && error.status !== 429) return false
    throw error
  }
}

/** Returns the identity and, of a did:plc, the shares that stay in the wallet. */
function newIdentity(
  wallet: Wallet,
  { handle, webDid }: Creation,
  repoKey: string,
): { identity: NewIdentity; shares: Partial<WalletContents> } {
  if (webDid !== null)
    return {
      identity: { method: 'web', repoKey, did: webDid, document: webDocument(wallet, webDid, handle, repoKey) },
      shares: {},
    }
  const { recoveryKey, keychain, escrow, paper } = newShares()
  const genesis = genesisOperation({
    // The device outranks the recovery key, which outranks the server.
    rotationKeys: [wallet.deviceDid, recoveryKey, repoKey],
    signingKey: repoKey,
    handle: handle as Handle,
    pdsEndpoint: wallet.server.url,
  })
  const operation = signOperation(genesis, wallet.deviceKey)
  return {
    identity: { method: 'plc', repoKey, operation, recoveryKey, escrowShare: escrow },
    shares: { recoveryKey, keychainShare: keychain, paperShare: paper },
  }
}

/** The exact text to publish, because the server compares it byte by byte. */
function webDocument(wallet: Wallet, did: string, handle: string, repoKey: string): string {
  const document = {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/multikey/v1'],
    id: did,
    alsoKnownAs: [`at://${handle}`],
    verificationMethod: [
      multikeyMethod(did, SIGNING_KEY_NAME, repoKey),
      multikeyMethod(did, 'device', wallet.deviceDid),
    ],
    service: [
      { id: `${did}#${PDS_SERVICE_NAME}`, type: 'AtprotoPersonalDataServer', serviceEndpoint: wallet.server.url },
    ],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

/** Returns the token of the new session; null if a try whose answer was lost has created the account. */
async function postIdentity(
  wallet: Wallet,
  identity: NewIdentity,
  token: string,
  password: string | null,
): Promise<string | null> {
  const keys =
    identity.method === 'plc'
      ? { signedCreationOp: identity.operation, recoveryKey: identity.recoveryKey, escrowShare: identity.escrowShare }
      : { didWebDocument: identity.document }
  const json = { rotationKeyPublic: wallet.deviceDid, ...keys, ...(password === null ? {} : { password }) }
  try {
    const answer = await wallet.server.post('/v1/dids', { token, json })
    if (answer['did'] !== wallet.did)
      throw new OperatorError(`the server created the account with ${String(answer['did'])} instead of ${wallet.did}`)
    return textOf(answer, 'session_token')
  } catch (error) {
    // The answer to an earlier try, or to this one, may have been lost after the account was made.
    const isUnknown = error instanceof NoAnswer || (error instanceof ServerRefusal && [401, 409].includes(error.status))
    if (!isUnknown || !(await isMade(wallet))) throw error
    return null
  }
}

async function takeHandle(wallet: Wallet, walletSession: string | null, handle: string): Promise<void> {
  const { did } = wallet.contents
  try {
    if (walletSession === null) {
      await asOwner(wallet, (token) =>
        wallet.server.post('/xrpc/com.atproto.identity.updateHandle', { token, json: { handle } }),
      )
    } else {
      await wallet.server.post('/v1/handles', { token: walletSession, json: { accountId: did, handle } })
    }
  } catch (error) {
    // If the answer to an earlier try was lost, this account itself may have the handle.
    const isTaken = error instanceof ServerRefusal && error.status === 409
    if (!isTaken || (await wallet.server.resolveHandle(handle)) !== did) throw error
  }
}

/**
 * Take an account into this empty wallet, whose key the identity must name, and give the identity a recovery key.
 * Returns why the server did not take its share; null if it did.
 */
export async function adopt(wallet: Wallet, account: string): Promise<OperatorError | null> {
  const did = await wallet.server.didOf(account)
  const { state } = await wallet.directory.head(did)
  if (!state.rotationKeys.includes(wallet.deviceDid))
    throw new OperatorError(`${did} does not list the key of this wallet, ${wallet.deviceDid}`)
  await wallet.update({ did })
  return renewShares(wallet)
}
