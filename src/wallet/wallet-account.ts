/** Changes of the account by its owner: another handle, the hosting of its document, deletion. */
import { OperatorError } from '../base/operator-error.ts'
import { parseHandle } from '../protocol/identifiers.ts'
import { signOperation, tombstone, withHandle } from '../protocol/plc.ts'
import { accountDeletionEnvelope } from '../protocol/signed-envelope.ts'
import { ownHead, signedChange } from './wallet-operations.ts'
import { asOwner, withFullAccess } from './wallet-sessions.ts'
import type { Wallet } from './wallet.ts'

/** Change the handle, at the server and, unless the server has already done so, in the identity. */
export async function changeHandle(wallet: Wallet, text: string): Promise<string> {
  const handle = parseHandle(text)
  if (handle === null) throw new OperatorError(`${text} is not a handle`)
  await withFullAccess(wallet, (token) =>
    wallet.server.post('/xrpc/com.atproto.identity.updateHandle', { token, json: { handle } }),
  )
  await wallet.update({ handle })
  if (wallet.did.startsWith('did:plc:')) {
    const head = await ownHead(wallet)
    const alsoKnownAs = withHandle(head.state.alsoKnownAs, handle)
    if (alsoKnownAs[0] !== head.state.alsoKnownAs[0]) {
      const refused = await wallet.directory.submit(wallet.did, signedChange(head, { alsoKnownAs }, wallet.deviceKey))
      if (refused !== null)
        throw new OperatorError(`the server knows the new handle, but the directory refuses it: ${refused}`)
    }
  }
  return handle
}

/** Have the server start or stop publishing the document of a did:web. */
export async function setHosting(wallet: Wallet, enabled: boolean): Promise<void> {
  await wallet.server.need('didWebHosting', 'publishing the documents of did:web identities')
  await asOwner(wallet, (token) => wallet.server.post('/v1/did-web/hosting', { token, json: { enabled } }))
}

/** Replace the document that the server publishes. */
export async function publishDocument(wallet: Wallet, document: object): Promise<void> {
  await asOwner(wallet, (token) => wallet.server.post('/v1/did-web/document', { token, json: { document } }))
}

/** Have the server mail the code that deleting the account requires. */
export async function requestDeletion(wallet: Wallet): Promise<void> {
  await wallet.server.need('walletAccountDelete', 'deleting an account by its key')
  await withFullAccess(wallet, (token) =>
    wallet.server.post('/xrpc/com.atproto.server.requestAccountDelete', { token }),
  )
}

export async function deleteAccount(wallet: Wallet, mailedCode: string): Promise<void> {
  const proof = await wallet.prove(accountDeletionEnvelope)
  const json = { did: wallet.did, password: '', token: mailedCode.trim(), custos: { proof } }
  await wallet.sendProof(() => wallet.server.post('/xrpc/com.atproto.server.deleteAccount', { json }))
  await wallet.update({ walletSession: null, session: null })
}

/** Tombstone the identity in the directory. After 72 hours, the DID can never be used again. */
export async function endIdentity(wallet: Wallet): Promise<void> {
  const { operation } = await ownHead(wallet)
  const refused = await wallet.directory.submit(wallet.did, signOperation(tombstone(operation), wallet.deviceKey))
  if (refused !== null) throw new OperatorError(`the directory refuses to end the identity: ${refused}`)
}
