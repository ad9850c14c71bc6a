/**
 * Tells the network that handles can be verified, once their first certificate is served. An AppView that asked the
 * hosts of the handles before then got no proof over HTTPS; it asks again when it gets an `#identity` event.
 */
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { certificatesOf, covers } from '../../../platform/network/certificate-shelf.ts'
import { StepPostponed, type StepKind } from '../../../platform/running/steps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { accountAt, type Account } from '../../identity/accounts/accounts.ts'
import { findCertificate } from './certificate-store.ts'
import { activeHandlesAfter } from './own-name-store.ts'
import type { WantedNames } from './wanted-certificates.ts'

/** Handles of one try, and the wait before the next: everyone who follows the network looks each of them up. */
const PAGE_HANDLES = 20
const PAUSE_SECS = 2
/** Until every connection gets the certificate: other nodes look for it, and former listeners finish. */
export const SERVED_SECS = 10
/** A certificate that is not served after this time never will be, for example because there are too many. */
const MAX_UNSERVED_MILLIS = DAY_MILLIS

interface Progress {
  /** The names of the certificate. */
  names: WantedNames
  /** The last handle under a wildcard that was announced; empty before the first. */
  after: string
}

export const firstCertificateStep: StepKind<Progress> = {
  name: 'first-certificate',
  concurrency: 1,
  maxSteps: 1000,
  maxTries: 20,
  firstWaitSecs: 60,
  maxWaitSecs: 3600,
  async take(ctx, { payload: { names, after }, end }) {
    if (ctx.config.tls.mode !== 'acme') return
    const all = names.split(' ')
    if (!certificatesOf(ctx).served.some((served) => served.names.includes(all[0]!))) return waitForService(ctx, names)
    const page = names.includes('*')
      ? (await activeHandlesAfter(ctx.db, after, PAGE_HANDLES)).map(({ handle }) => handle)
      : all
    const isLast = !names.includes('*') || page.length < PAGE_HANDLES
    await ctx.db.transaction(async (tx) => {
      if (!(await end(tx))) return
      const dids = new Set<Did>()
      for (const name of page.filter((one) => covers({ names: all }, one)))
        for (const identifier of [name, `did:web:${name}`]) {
          const account = await accountAt(tx, identifier)
          if (account !== null && isActive(account)) dids.add(account.did)
        }
      const events = [...dids].map((did) => ({ type: 'identity', did }) as const)
      if (events.length > 0) await sequenceEvents(ctx, tx, events)
      if (!isLast)
        await ctx.steps.add(tx, firstCertificateStep, {
          key: names,
          payload: { names, after: page.at(-1)! },
          waitSecs: dids.size > 0 ? PAUSE_SECS : 0,
        })
    })
  },
}

const isActive = ({ deactivatedAt, takedownRef }: Account): boolean => deactivatedAt === null && takedownRef === null

/** Throws `StepPostponed` while the certificate may still be served, because it is stored and new. */
async function waitForService(ctx: Context, names: WantedNames): Promise<void> {
  const stored = await findCertificate(ctx.db, names)
  // A clock that was set back ends the wait too.
  const unservedMillis = stored === null ? Infinity : Math.abs(ctx.clock.now() - stored.issuedAt)
  if (unservedMillis <= MAX_UNSERVED_MILLIS)
    throw new StepPostponed('the certificate is not served yet', SERVED_SECS * 1000)
  const reason = stored === null ? 'it is not stored any more' : 'it is not served'
  ctx.log.warn('could not announce the first certificate to the network', { subject: names, reason })
}
