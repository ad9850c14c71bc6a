/** The certificates of this server, unless a reverse proxy has them: from files, or from a certificate authority. */
import type { Feature } from '../../../http/feature.ts'
import { serveFiles, watchFiles } from './certificate-files.ts'

export const certificates: Feature = {
  name: 'certificates',
  enabled: ({ config }) => config.tls.mode !== 'off',
  async prepare(ctx) {
    if (ctx.config.tls.mode === 'files') serveFiles(ctx)
  },
  start(ctx) {
    if (ctx.config.tls.mode === 'files') return watchFiles(ctx)
  },
}
