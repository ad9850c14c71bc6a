/** Asks the authority when to renew certificates. Source: RFC 9773. */
import { randomInt } from 'node:crypto'
import { DAY_MILLIS, HOUR_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { AcmeFault, type AcmeClient } from '../../../platform/network/acme-client.ts'
import { certificatesToAskAbout, scheduleRenewal } from './certificate-store.ts'
import { nameForRenewal, opened } from './sealed-certificate.ts'

/** Most certificates about which the authority is asked in one pass. */
const MAX_ASKED = 20
const MIN_ASK_MILLIS = HOUR_MILLIS
const MAX_ASK_MILLIS = DAY_MILLIS
/** A certificate is renewed before this last share of its life begins, whatever the authority advises. */
const LAST_SHARE = 0.1
/** When to ask again if the authority names no time: RFC 9773, 4.3.2 recommends six hours. */
const USUAL_ASK_MILLIS = 6 * HOUR_MILLIS

/** Ask the authority when to renew. Without an answer, nothing changes. Returns how many it was asked about. */
export async function askWhenToRenew(ctx: Context, client: AcmeClient, signal: AbortSignal): Promise<number> {
  const now = ctx.clock.now()
  const rows = await certificatesToAskAbout(ctx.db, now, MAX_ASKED)
  for (const { names, wrapped, renewAt, issuedAt, notAfter } of rows) {
    const name = nameForRenewal(opened(ctx, wrapped))
    const advice = name === null ? null : await adviceOf(ctx, client, name, signal)
    const wait = Math.min(Math.max(advice?.waitMillis ?? USUAL_ASK_MILLIS, MIN_ASK_MILLIS), MAX_ASK_MILLIS)
    // Choose the time of renewal once in a window: choosing again after each answer would make early times likely.
    const isWithin = advice === null || (renewAt >= advice.start && renewAt < advice.end)
    const chosen = isWithin ? renewAt : advice.start + randomInt(1 + Math.min(advice.end - advice.start, 2 ** 47))
    // An authority may advise a time near the end, or after it. Leave time for failures.
    const latest = notAfter - (notAfter - issuedAt) * LAST_SHARE
    await scheduleRenewal(ctx.db, { names, renewAt: Math.min(chosen, Math.floor(latest)), askAt: now + wait })
  }
  return rows.length
}

async function adviceOf(ctx: Context, client: AcmeClient, name: string, signal: AbortSignal) {
  try {
    return await client.renewalWindow(name, signal)
  } catch (error) {
    if (!(error instanceof AcmeFault)) throw error
    ctx.log.warn('the certificate authority did not say when to renew a certificate', { reason: error.message })
    return null
  }
}
