/** What certificates plug into the server. */
import type { Feature } from '../../../http/feature.ts'
import { certificatesOf } from '../../../platform/network/certificate-shelf.ts'
import { acmeSweep } from './acme-sweep.ts'
import { certificatesRoute, earliestEnd } from './certificate-report.ts'
import { deleteNameOrdersOf } from './certificate-store.ts'
import { firstCertificateStep } from './first-certificate-step.ts'
import { serveFiles, watchFiles } from './certificate-files.ts'

/** Parts that only `tls.mode` acme loads. */
const acmeParts = async () => ({
  ...(await import('./acme-authority.ts')),
  ...(await import('./challenge-records.ts')),
})

export const certificates: Feature = {
  name: 'certificates',
  routes: [certificatesRoute],
  sweeps: [acmeSweep],
  steps: [firstCertificateStep],
  async forgetAccount(_, tx, did) {
    await deleteNameOrdersOf(tx, did)
  },
  async prepare(ctx) {
    if (ctx.config.tls.mode === 'off') return
    ctx.metrics.gauge(
      'certificates_served',
      'Certificates with which the server encrypts connections',
      () => certificatesOf(ctx).served.length,
    )
    ctx.metrics.gauge(
      'certificate_expiry_timestamp',
      'End of the served certificate that ends first, in Unix seconds',
      () => {
        const end = earliestEnd(ctx)
        return end === null ? null : Math.floor(end / 1000)
      },
    )
    if (ctx.config.tls.mode === 'files') return serveFiles(ctx)
    const { openAuthority, serveStored, rehearseResponder, hideRecords } = await acmeParts()
    await openAuthority(ctx)
    if (ctx.config.tls.acmeChallenge === 'dns-01') await rehearseResponder(ctx)
    await serveStored(ctx)
    return () => hideRecords(ctx)
  },
  start(ctx) {
    if (ctx.config.tls.mode === 'files') return watchFiles(ctx)
  },
  async reclaim(ctx) {
    if (ctx.config.tls.mode !== 'acme') return
    const { serveStored, showRecords } = await acmeParts()
    await serveStored(ctx)
    await showRecords(ctx)
  },
}
