/** HTML as text that cannot be mixed up with what is shown in it: values in a template are escaped, templates are not. */

export class Html {
  constructor(readonly text: string) {}
}

type Value = Html | string | number | null | undefined | false | readonly Value[]

/** html`<p>${name}</p>`: texts are escaped, nested templates and lists go in as they are, null and false as nothing. */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(strings.reduce((text, string, i) => text + rendered(values[i - 1]) + string))

function rendered(value: Value): string {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(rendered).join('')
  return Bun.escapeHTML(String(value))
}

/** Characters that change how their neighbours are shown, or are not shown at all. */
const deceptive = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** What somebody calls themselves, as one short line that cannot disguise itself. */
export function plainName(text: string, maxChars = 80): string {
  const name = [...text.replace(deceptive, '').replace(/\s+/g, ' ').trim()]
  return name.length > maxChars ? `${name.slice(0, maxChars - 1).join('')}…` : name.join('')
}
