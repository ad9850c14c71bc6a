/** The certificates of this server, unless a reverse proxy has them: from files, or from a certificate authority. */
import type { Feature } from '../../../http/feature.ts'
import { openAuthority, serveStored } from './acme-authority.ts'
import { acmeSweep } from './acme-sweep.ts'
import { hideRecords, rehearseResponder, showRecords } from './challenge-records.ts'
import { serveFiles, watchFiles } from './certificate-files.ts'

export const certificates: Feature = {
  name: 'certificates',
  enabled: ({ config }) => config.tls.mode !== 'off',
  sweeps: [acmeSweep],
  async prepare(ctx) {
    if (ctx.config.tls.mode === 'files') return serveFiles(ctx)
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
    await serveStored(ctx)
    await showRecords(ctx)
  },
}
