/** HTML templates: plain values are escaped, nested templates are not, so markup and content cannot be confused. */

export class Html {
  constructor(readonly text: string) {}
}

type Value = Html | string | number | null | undefined | false | readonly Value[]

/**
 * html`<p>${name}</p>`: text is escaped, nested templates and lists are inserted unchanged, null, undefined and false
 * as nothing.
 */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(strings.reduce((text, string, i) => text + rendered(values[i - 1]) + string))

function rendered(value: Value): string {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(rendered).join('')
  return Bun.escapeHTML(String(value))
}

/** Characters that are invisible or change how their neighbours are displayed. */
const deceptive = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** Returns a self-chosen name as one short line, without characters that could disguise it. */
export function plainName(text: string, maxChars = 80): string {
  const name = [...text.replace(deceptive, '').replace(/\s+/g, ' ').trim()]
  return name.length > maxChars ? `${name.slice(0, maxChars - 1).join('')}…` : name.join('')
}
