/** Small charts, drawn as SVG by the server. */
import { html, type Html, type Wording } from '../../../http/html.ts'

const WIDTH = 320
const HEIGHT = 64

/** Draws one bar for each value, oldest first. `label` says what is shown, for people who do not see it. */
export function barChart(label: Wording, values: readonly number[]): Html {
  const most = Math.max(1, ...values)
  const step = WIDTH / Math.max(1, values.length)
  const bars = values.map((value, i) => {
    const height = Math.round((value / most) * (HEIGHT - 2))
    return html`<rect x="${(i * step).toFixed(2)}" y="${HEIGHT - height}" width="${Math.max(0.5, step - 1).toFixed(2)}" height="${height}"/>`
  })
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">${bars}</svg>`
}
