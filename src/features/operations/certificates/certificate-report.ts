/** What operators learn about the certificates of this server. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import { route } from '../../../http/endpoint.ts'
import type { Context } from '../../../platform/context.ts'
import { certificatesOf, type Certificate } from '../../../platform/network/certificate-shelf.ts'
import { wireTime, wireTimeOrNull, type Millis } from '../../../protocol/identifiers.ts'
import { operator } from '../operators/operators.ts'
import { fileFaults } from './certificate-files.ts'
import { countOrders, listOrders, listRenewals } from './certificate-store.ts'
import { standingCertificates } from './wanted-certificates.ts'

/** A renewal is late if a certificate ends within this time, or within a fifth of its life if that is shorter. */
const NEAR_END_MILLIS = 14 * DAY_MILLIS
const NEAR_END_SHARE = 0.2
const MAX_TOLD = 100

/** A problem with the certificate for these names, now or soon. */
export interface CertificateFault {
  names: string
  text: string
}

/**
 * Returns up to 100 faults: files that cannot be served, served certificates near their end, and missing certificates
 * of the service itself, each with the reason if it is known.
 */
export async function certificateFaults(ctx: Context): Promise<CertificateFault[]> {
  const { clock, config, db } = ctx
  const now = clock.now()
  const reasons = new Map<string, string>()
  const missing: string[] = []
  if (config.tls.mode === 'acme') {
    const first = standingCertificates(config)
    for (const { names, fault } of await listOrders(db, { first, limit: MAX_TOLD }))
      if (fault !== null) reasons.set(names, fault)
    const kept = new Set((await listRenewals(db, now)).map(({ names }) => names))
    missing.push(...first.filter((names) => !kept.has(names) && reasons.has(names)))
  }
  const ending = certificatesOf(ctx).served.filter((certificate) => isNearEnd(certificate, now))
  const told = [
    ...fileFaults(ctx).map(({ path, text }) => ({ names: path, text })),
    ...missing.map((names) => ({ names, text: `there is no certificate for ${names}` })),
    ...ending.map(({ names, notAfter }) => ({ names: names.join(' '), text: endOf(names.join(' '), notAfter, now) })),
  ]
  return told.slice(0, MAX_TOLD).map(({ names, text }) => {
    const reason = reasons.get(names)
    return { names, text: reason === undefined ? text : `${text}: ${reason}` }
  })
}

/** Whether a certificate ends so soon that its renewal must have failed: most are renewed with a third of it left. */
export const isNearEnd = ({ notBefore, notAfter }: Pick<Certificate, 'notBefore' | 'notAfter'>, now: Millis): boolean =>
  notAfter - now < Math.min(NEAR_END_MILLIS, (notAfter - notBefore) * NEAR_END_SHARE)

const endOf = (names: string, notAfter: Millis, now: Millis): string =>
  notAfter > now
    ? `the certificate for ${names} is valid for ${((notAfter - now) / DAY_MILLIS).toFixed(1)} more days`
    : `the certificate for ${names} has expired`

/** Returns when the first of the served certificates ends; null if none is served. */
export const earliestEnd = (ctx: Context): Millis | null => {
  const { served } = certificatesOf(ctx)
  return served.length === 0 ? null : served.reduce((least, { notAfter }) => Math.min(least, notAfter), Infinity)
}

export interface CertificatesView {
  served: number
  earliestEndsAt: string | null
  faults: readonly CertificateFault[]
  /** Certificates that the server is getting. */
  waiting: number
  orders: readonly { names: string; fault: string | null; nextAt: string }[]
}

export const CERTIFICATES_PATH = '/v1/admin/certificates'

export const certificatesRoute = route('GET', CERTIFICATES_PATH, {
  auth: operator('observe'),
  async handler({ ctx }): Promise<CertificatesView> {
    const orders = await listOrders(ctx.db, { first: standingCertificates(ctx.config), limit: MAX_TOLD })
    return {
      served: certificatesOf(ctx).served.length,
      earliestEndsAt: wireTimeOrNull(earliestEnd(ctx)),
      faults: await certificateFaults(ctx),
      waiting: await countOrders(ctx.db),
      orders: orders.map(({ names, fault, nextAt }) => ({ names, fault, nextAt: wireTime(nextAt) })),
    }
  },
})
