/**
 * Gets one certificate, from the order to the row. All progress is in the order's row and at the authority, so the next
 * pass continues wherever this one ends.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { HOUR_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import {
  AcmeFault,
  wordsOf,
  type AcmeClient,
  type PlacedOrder,
  type Waiting,
} from '../../../platform/network/acme-client.ts'
import { readWholeCertificate } from '../../../platform/network/certificate-shelf.ts'
import { recordValue } from '../../../protocol/acme.ts'
import { certificateRequest } from '../../../protocol/certificate-request.ts'
import { deleteOrder, findCertificate, noteOrderPlaced, putCertificate, type StoredOrder } from './certificate-store.ts'
import type { ChallengeRecord } from './challenge-record-store.ts'
import { publishRecords } from './challenge-records.ts'
import { firstCertificateStep, SERVED_SECS } from './first-certificate-step.ts'
import { nameForRenewal, opened, renewalTime, sealed } from './sealed-certificate.ts'
import { needsRecords } from './wanted-certificates.ts'

/** How often one pass reads an order, and the pauses in between. Afterwards the next pass continues. */
const MAX_LOOKS = 16
const FIRST_PAUSE_MILLIS = 250
const MAX_PAUSE_MILLIS = 5000
/** An order that is not complete after this time is given up. */
const MAX_ORDER_MILLIS = HOUR_MILLIS

export interface Authority {
  client: AcmeClient
  /** The key of the account. */
  key: KeyObject
}

/** Returns a new key in DER, for `insertOrder`. */
export const newCertificateKey = (): Uint8Array =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'der' })

/**
 * Take an order as far as it goes now. Returns whether the certificate is stored; if not, the authority needs more
 * time. Throws `AcmeFault`.
 */
export async function continueOrder(
  ctx: Context,
  authority: Authority,
  stored: StoredOrder,
  signal: AbortSignal,
): Promise<boolean> {
  const { client } = authority
  const key = createPrivateKey({ key: Buffer.from(ctx.vault.unwrap(stored.keyWrapped)), type: 'pkcs8', format: 'der' })
  const names = stored.names.split(' ')
  let order = stored.url === null ? await place(ctx, client, stored, signal) : await client.order(stored.url, signal)
  if (order.status === 'pending') await proveAll(ctx, authority, stored.names, order, signal)
  for (let looks = 1; ; looks++) {
    if (order.status === 'invalid') throw new AcmeFault('refused', await faultOf(client, order, signal))
    if (order.status === 'valid') {
      await keep(ctx, stored.names, await client.certificate(certificateUrl(order), signal), key)
      return true
    }
    if (looks > MAX_LOOKS) return waitLonger(ctx, stored)
    if (order.status === 'ready') order = await client.finalize(order, certificateRequest(names, key), signal)
    else {
      await pause(Math.min(order.waitMillis ?? FIRST_PAUSE_MILLIS * 2 ** (looks - 1), MAX_PAUSE_MILLIS), undefined, {
        signal,
      })
      order = await client.order(order.url, signal)
    }
  }
}

async function place(
  ctx: Context,
  client: AcmeClient,
  { names }: StoredOrder,
  signal: AbortSignal,
): Promise<Waiting<PlacedOrder>> {
  const former = await findCertificate(ctx.db, names)
  const replaces = former && nameForRenewal(opened(ctx, former.wrapped))
  const placeThat = (replaced: string | null) => client.placeOrder(names.split(' '), replaced, signal)
  const order = await placeThat(replaces).catch((error: unknown) => {
    // The authority may not know the former certificate, for example after a change of `tls.acme_directory_url`, or may
    // count it as replaced by an order that this server has lost.
    if (replaces === null || !(error instanceof AcmeFault) || error.kind !== 'refused') throw error
    return placeThat(null)
  })
  await noteOrderPlaced(ctx.db, names, order.url, ctx.clock.now())
  return order
}

/** Ask the authority to check all names, once the server has an answer for each. */
async function proveAll(
  ctx: Context,
  { client, key }: Authority,
  names: string,
  order: PlacedOrder,
  signal: AbortSignal,
): Promise<void> {
  const kind = needsRecords(names, ctx.config) ? 'dns-01' : 'http-01'
  const open: string[] = []
  const records: ChallengeRecord[] = []
  for (const url of order.authorizations) {
    const { status, identifier, challenges } = await client.authorization(url, signal)
    if (status !== 'pending') continue
    const challenge = challenges.find(({ type }) => type === kind)
    if (challenge?.token === undefined)
      throw new AcmeFault('refused', `the authority offers no ${kind} challenge for ${identifier.value}`)
    records.push({
      names,
      recordName: `_acme-challenge.${identifier.value.toLowerCase()}`,
      value: recordValue(challenge.token, key),
    })
    if (challenge.status === 'pending') open.push(challenge.url)
  }
  if (kind === 'dns-01') await publishRecords(ctx, records, signal)
  for (const url of open) await client.accept(url, signal)
}

function certificateUrl({ certificate }: PlacedOrder): string {
  if (certificate === undefined) throw new AcmeFault('unavailable', 'a valid order has no certificate')
  return certificate
}

async function faultOf(client: AcmeClient, order: PlacedOrder, signal: AbortSignal): Promise<string> {
  if (order.error !== undefined) return wordsOf(order.error)
  for (const url of order.authorizations) {
    const authorization = await client.authorization(url, signal)
    const error = authorization.challenges.find((challenge) => challenge.error !== undefined)?.error
    if (error !== undefined) return `${authorization.identifier.value}: ${wordsOf(error)}`
  }
  return 'the order became invalid'
}

/** Placed more than an hour ago, or, if the time is in the future, at an unknown time while the clock was ahead. */
export const isOverdue = ({ clock }: Context, { placedAt }: Pick<StoredOrder, 'placedAt'>): boolean =>
  placedAt !== null && Math.abs(clock.now() - placedAt) > MAX_ORDER_MILLIS

function waitLonger(ctx: Context, order: StoredOrder): false {
  if (isOverdue(ctx, order)) throw new AcmeFault('refused', 'the order was not completed within an hour')
  return false
}

/** Check the certificate that the authority sent, and store it in place of the order. */
async function keep(ctx: Context, names: string, chain: string, key: KeyObject): Promise<void> {
  const now = ctx.clock.now()
  const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const found = readWholeCertificate(chain, pem)
  if ('fault' in found) throw new AcmeFault('refused', `the certificate that was issued ${found.fault}`)
  if (!new Set(found.names).isSupersetOf(new Set(names.split(' '))))
    throw new AcmeFault('refused', 'the certificate that was issued is for other names')
  if (found.notAfter <= now) throw new AcmeFault('refused', 'the certificate that was issued has expired')
  const wrapped = sealed(ctx, { chain, key: pem })
  await ctx.db.transaction(async (tx) => {
    const isFirst = (await findCertificate(tx, names)) === null
    await putCertificate(tx, {
      names,
      wrapped,
      issuedAt: now,
      notAfter: found.notAfter,
      renewAt: renewalTime(found),
      askAt: now,
    })
    await deleteOrder(tx, names)
    const step = { key: names, payload: { names, after: '' }, waitSecs: SERVED_SECS }
    if (isFirst) await ctx.steps.add(tx, firstCertificateStep, step)
  })
}
