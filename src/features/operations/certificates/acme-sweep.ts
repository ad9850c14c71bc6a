/** Gets and renews certificates, and serves the stored ones. On a cluster, one node makes the pass and all serve. */
import type { Sweep } from '../../../platform/running/sweeps.ts'

const INTERVAL_SECS = 60

export const acmeSweep: Sweep = {
  name: 'certificates',
  atStart: true,
  intervalSecs: ({ tls }) => (tls.mode === 'acme' ? INTERVAL_SECS : 0),
  counts: { issued: 'certificates_issued_total', failed: 'certificate_orders_failed_total' },
  async run(ctx, stopping) {
    if (ctx.config.tls.mode !== 'acme') return {}
    const { getCertificates } = await import('./acme-pass.ts')
    return getCertificates(ctx, stopping)
  },
}
