/** Makes an identity name the present address of this server in place of a former one. */
import type { Context } from '../../../platform/context.ts'
import { isOwnUrl } from '../../../platform/configuration/service-names.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { pdsEndpoint, type DidDocument } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  isPlcDid,
  nextOperation,
  operationCid,
  PDS_SERVICE_NAME,
  pdsService,
  signOperation,
  stateOf,
  type LogOperation,
} from '../../../protocol/plc.ts'
import { identitySigner, requireNoDoubt, submitOperation, verdictOf } from '../../identity/identity/identity.ts'
import { documentOfAccount, editDocument, findWebDocument } from '../../identity/web-documents/web-documents.ts'
import { noteSending, unansweredSince, type RenameState } from './host-rename-store.ts'

export interface IdentityOutcome {
  state: Exclude<RenameState, 'sending' | 'failed'>
  detail: string | null
}

const outcome = (state: IdentityOutcome['state'], detail: string | null = null): IdentityOutcome => ({ state, detail })

/** Throws `PlcDirectoryError` while the directory does not answer, or may still take an earlier operation. */
export const renameIdentity = (ctx: Context, did: Did): Promise<IdentityOutcome> =>
  isPlcDid(did) ? renamePlc(ctx, did) : renameWeb(ctx, did)

async function renamePlc(ctx: Context, did: Did): Promise<IdentityOutcome> {
  const last = await ctx.plc.lastOperation(did)
  const state = last && stateOf(last)
  if (!last || !state) return outcome('refused', 'the identity has ended')
  const found = placeOf(ctx, state.services[PDS_SERVICE_NAME]?.endpoint)
  // An operation that was sent before the server got its former name back would change what the identity names now.
  if (found?.state === 'updated') requireNoDoubt(await unansweredSince(ctx.db, did), ctx.clock.now())
  if (found !== null) return found
  const key = await identitySigner(ctx, did, state.rotationKeys)
  if (key === null) return outcome('by_holder')
  const services = { ...state.services, [PDS_SERVICE_NAME]: pdsService(ctx.config.publicUrl) }
  return submit(ctx, did, signOperation(nextOperation(last, { services })!, key))
}

async function submit(ctx: Context, did: Did, operation: LogOperation): Promise<IdentityOutcome> {
  const sentAt = ctx.clock.now()
  const before = await ctx.db.transaction((tx) => noteSending(tx, did, sentAt))
  try {
    await submitOperation(ctx, did, operation)
    return outcome('updated')
  } catch (error) {
    if (!['invalid', 'refused'].includes(verdictOf(error))) throw error
    requireNoDoubt(before, sentAt)
    await requireLast(ctx, did, operation)
    return outcome('refused', (error as PlcDirectoryError).message)
  }
}

/**
 * Call it before a refusal counts. Throws if the directory's last operation is not the one that ours follows: since we
 * read it, the holder or another node has changed the identity. The next try starts from that change.
 */
async function requireLast({ plc }: Context, did: Did, { prev }: LogOperation): Promise<void> {
  const last = await plc.lastOperation(did)
  if (last === null || operationCid(last).toString() !== prev)
    throw new Error('the identity was changed while the operation was on its way')
}

/** Returns the outcome for an endpoint, or null if it is a former address of this server, which has to be replaced. */
function placeOf({ config }: Context, endpoint: string | null | undefined): IdentityOutcome | null {
  if (endpoint?.replace(/\/$/, '') === config.publicUrl) return outcome('updated')
  return isOwnUrl(config, endpoint) ? null : outcome('elsewhere')
}

/** If this server serves the document, change it here. Any other document is changed by the person who publishes it. */
async function renameWeb(ctx: Context, did: Did): Promise<IdentityOutcome> {
  const resolution = await documentOfAccount(ctx, did)
  if (!resolution.ok) return outcome('by_holder', 'the document cannot be fetched')
  const { document } = resolution
  const found = placeOf(ctx, pdsEndpoint(document))
  if (found !== null) return found
  const stored = await findWebDocument(ctx.db, did)
  if (stored === null || stored.hostedSince === null) return outcome('by_holder')
  const { service = [] } = document
  const changed: DidDocument = {
    ...document,
    service: service.map((one) =>
      isOwnUrl(ctx.config, one.serviceEndpoint) ? { ...one, serviceEndpoint: ctx.config.publicUrl } : one,
    ),
  }
  await editDocument({ ctx }, did, changed)
  return outcome('updated')
}
