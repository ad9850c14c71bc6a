/** Colours of the operator's brand, and whether they can be read on the pages. WCAG 2.2, 1.4.3. */

/** Colours behind text in the accent colour, and of text on that colour, as in the stylesheet. */
const grounds = {
  light: ['#ffffff', '#eef3f1', '#f6f9f8'],
  dark: ['#151f1c', '#0d1412', '#1b2724', '#06231b'],
} as const

const MIN_CONTRAST = 4.5

/** The relative luminance of a colour `#rrggbb`, from 0 to 1. */
function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

export function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].toSorted((a, b) => a - b) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

/** Returns the colour of a page on which the accent is too faint; null if it can be read everywhere. */
export const faintOn = (accent: string, mode: keyof typeof grounds): string | null =>
  grounds[mode].find((ground) => contrast(accent, ground) < MIN_CONTRAST) ?? null
