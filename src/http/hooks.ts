/**
 * What features do for each other without knowing each other: each declares its part in its `Feature`, and others call
 * the parts of all features here.
 */
import type { Throttle } from '../base/pace.ts'
import { perContext, type Context } from '../platform/context.ts'
import type { Reader, Tx } from '../platform/database/database.ts'
import type { Did } from '../protocol/identifiers.ts'
import type { Credential, CredentialKind } from './credential.ts'
import type { Exchange, Outline } from './endpoint.ts'
import type { AccessEnd, AddressChange, EndedAccess, Feature, Grant, RecordSource, SetAsideBlob } from './feature.ts'

const registry = perContext<{ features: readonly Feature[] }>(() => ({ features: [] }))

/** Makes the features known to each other's hooks. `app.ts` calls it once for each context. */
export function registerFeatures(ctx: Context, features: readonly Feature[]): void {
  registry(ctx).features = features
}

/** Deletes all rows about an account, in features that build on others first. Returns what is to follow the commit. */
export async function forgetAccount(ctx: Context, tx: Tx, did: Did): Promise<() => Promise<void>> {
  const sequels: (() => Promise<void>)[] = []
  for (const feature of registry(ctx).features.toReversed()) {
    const sequel = await feature.forgetAccount?.(ctx, tx, did)
    if (sequel) sequels.push(sequel)
  }
  return async () => {
    for (const sequel of sequels) await sequel()
  }
}

/** End access to an account, in whatever features gave it. Returns how many credentials of each kind ended. */
export async function endAccess(ctx: Context, tx: Tx, did: Did, why: AccessEnd): Promise<EndedAccess> {
  const ended: EndedAccess = {}
  for (const feature of registry(ctx).features) Object.assign(ended, await feature.endAccess?.(ctx, tx, did, why))
  return ended
}

/** End what only an active account may have, now that this one is deactivated. */
export async function endActivity(ctx: Context, tx: Tx, did: Did): Promise<void> {
  for (const feature of registry(ctx).features) await feature.endActivity?.(tx, did)
}

/** End what the address of an account was good for, now that it has another. */
export async function endAddress(ctx: Context, tx: Tx, did: Did, address: AddressChange): Promise<void> {
  for (const feature of registry(ctx).features) await feature.endAddress?.(ctx, tx, did, address)
}

/** End the access that features gave by a delegation: to an account that acts for `did`. */
export async function endDelegation(ctx: Context, tx: Tx, delegation: { id: string; did: Did }): Promise<void> {
  for (const feature of registry(ctx).features) await feature.endDelegation?.(ctx, tx, delegation)
}

/** End what features do for a device of an operator that is revoked. */
export async function endOperatorDevice(ctx: Context, tx: Tx, deviceId: string): Promise<void> {
  for (const feature of registry(ctx).features) await feature.endOperatorDevice?.(ctx, tx, deviceId)
}

/** Tell moderators of a blob that a check has set aside. */
export async function reportBlob(ctx: Context, tx: Tx, blob: SetAsideBlob): Promise<void> {
  for (const feature of registry(ctx).features) await feature.reportBlob?.(ctx, tx, blob)
}

/** The grants that features add to the token endpoint, by `grant_type`. */
export const addedGrants = (ctx: Context): Readonly<Record<string, Grant>> =>
  Object.assign({}, ...registry(ctx).features.map((feature) => feature.grants?.(ctx)))

/** Have another service answer a public read. Throws what the feature that forwards requests throws. */
export function passOn(exchange: Exchange): Promise<Outline> {
  const forwarder = registry(exchange.ctx).features.find((feature) => feature.passOn)
  if (forwarder === undefined) throw new Error('no feature forwards requests')
  return forwarder.passOn!(exchange)
}

/** Whether a feature requires every blob of an account to be kept. */
export async function keepsBlobs(ctx: Context, reader: Reader, did: Did): Promise<boolean> {
  for (const feature of registry(ctx).features) if (await feature.keepsBlobs?.(reader, did)) return true
  return false
}

/** Whether all features find that an account's references to blobs are right. */
export async function agreeOnBlobs(ctx: Context, did: Did, throttled: Throttle): Promise<boolean> {
  for (const feature of registry(ctx).features)
    if ((await feature.agreesOnBlobs?.(ctx.db, did, throttled)) === false) return false
  return true
}

/** The records of all accounts, for features that repositories build on. */
export function recordSource(ctx: Context): RecordSource {
  const source = registry(ctx).features.find((feature) => feature.records)
  if (source === undefined) throw new Error('no feature has records')
  return source.records!
}

const credentialsOf = perContext(
  (ctx) =>
    new Map(
      registry(ctx).features.flatMap(({ credentials = [] }) =>
        credentials.map((credential) => [credential.name, credential]),
      ),
    ),
)

/** The credential of a kind, as the feature that owns it declares it. */
export function credentialOf<Caller>(ctx: Context, { name }: CredentialKind<Caller>): Credential<Caller> {
  const credential = credentialsOf(ctx).get(name)
  if (credential === undefined) throw new Error(`no feature declares the credential "${name}"`)
  return credential as Credential<Caller>
}
