/** Decides which handles an account on this server may take. */
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import { didWebUrl } from '../../../protocol/did-document.ts'
import { checkHandle, type HandlePolicy } from '../../../protocol/handle-policy.ts'
import { parseHandle, type Did, type Handle } from '../../../protocol/identifiers.ts'
import { accountAt } from '../accounts/accounts.ts'
import { lookUpHandle } from '../identity/identity.ts'
import { reservedFor } from './name-reservation-store.ts'

/** The list of reserved labels is long, so the set is made once. */
const policies = new WeakMap<Config, HandlePolicy>()

export function handlePolicy({ config }: Pick<Context, 'config'>): HandlePolicy {
  const known = policies.get(config)
  if (known !== undefined) return known
  const policy = {
    serviceDomains: config.availableUserDomains,
    reservedLabels: new Set(config.reservedHandles),
    ownNames: ownNamesOf(config),
    blockedWords: config.blockedHandleWords,
  }
  policies.set(config, policy)
  return policy
}

/** Present and former hosts of the server, and its handle domains, because one of these names may be under another. */
function ownNamesOf({ publicUrl, formerUrls, serverDid, availableUserDomains }: Config): ReadonlySet<string> {
  const urls = [publicUrl, ...formerUrls].map((url) => new URL(url))
  const hosts = [...urls, didWebUrl(serverDid) ?? []].flat().map(({ hostname }) => hostname)
  return new Set([...hosts, ...availableUserDomains])
}

/**
 * Whether an account has the handle, or is about to get it. Such a handle stays with its account when the list of
 * reserved labels grows. The caller checks which account has it.
 */
export async function isGivenName({ db, clock }: Pick<Context, 'db' | 'clock'>, text: string): Promise<boolean> {
  const handle = parseHandle(text)
  return (
    handle !== null && ((await accountAt(db, handle)) !== null || (await reservedFor(db, handle, clock.now())) !== null)
  )
}

/**
 * Returns the handle if it is on a domain elsewhere, whose owner must confirm it; null if it is under our domains, or
 * if no account may take it.
 */
export function externalHandle(ctx: Pick<Context, 'config'>, text: string): Handle | null {
  const outcome = checkHandle(text, handlePolicy(ctx))
  return outcome.ok && outcome.kind === 'external' ? outcome.handle : null
}

/**
 * Returns the handle if policy allows an account to take it. The caller checks whether it is free.
 *
 * `did` is the account's DID, or null if a sign-up has none yet. Without a DID, only names under our domains are
 * allowed.
 *
 * Throws `InvalidHandle` or `HandleNotAvailable` if policy forbids the handle, `UnsupportedDomain` for an external
 * handle without a DID, `InvalidRequest` if an external handle does not resolve to the DID, and `LookupsFull` if too
 * many names are being looked up.
 */
export async function admitHandle(
  ctx: Context,
  text: string,
  did: Did | null,
  { allowReserved = false } = {},
): Promise<Handle> {
  const outcome = checkHandle(text, handlePolicy(ctx), { allowReserved })
  if (!outcome.ok) throw new Refusal(400, outcome.error, outcome.message)
  if (outcome.kind === 'served') return outcome.handle
  if (did === null) throw new Refusal(400, 'UnsupportedDomain', 'Not a supported handle domain')
  if ((await lookUpHandle(ctx, outcome.handle)) !== did) throw invalidRequest('External handle did not resolve to DID')
  return outcome.handle
}

/** The refusal of a handle that is taken, for wallets. Clients of the network get status 400 or another name. */
export const handleNotAvailable = (handle: Handle) =>
  new Refusal(409, 'HandleNotAvailable', `Handle already taken: ${handle}`)

/** Returns the handle if policy allows it and it is under one of our domains. Throws `InvalidHandle` if not. */
export function admitServedHandle(ctx: Pick<Context, 'config'>, text: string, { allowReserved = false } = {}): Handle {
  const outcome = checkHandle(text, handlePolicy(ctx), { allowReserved })
  if (!outcome.ok) throw new Refusal(400, 'InvalidHandle', outcome.message)
  if (outcome.kind !== 'served') throw new Refusal(400, 'InvalidHandle', 'Not a supported handle domain')
  return outcome.handle
}
