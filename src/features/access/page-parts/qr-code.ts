import { html, type Html, type Wording } from '../../../http/html.ts'

/** Modules of white around a QR code, without which readers do not find it. */
const QUIET_ZONE = 4

/**
 * Dark on white whatever the page looks like, because readers expect it. Runs of dark modules are one rectangle each.
 */
export function qrCode(text: string, label: Wording): Html {
  // Loaded on first use, because it would slow the start by milliseconds.
  const { encodeQR } = require('qr') as typeof import('qr')
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_ZONE })
  const path = rows
    .flatMap((row, y) =>
      [
        ...row
          .map((dark) => (dark ? 1 : 0))
          .join('')
          .matchAll(/1+/g),
      ].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`),
    )
    .join('')
  return html`<svg class="qr" viewBox="0 0 ${rows.length} ${rows.length}" role="img" aria-label="${label}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${rows.length}v${rows.length}h-${rows.length}z"/><path fill="#000" d="${path}"/></svg>`
}
