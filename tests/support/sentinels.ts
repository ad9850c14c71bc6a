/** Words that occur in one place only, and a search for them that sees through the usual encodings. */

/** Every form in which bytes that contain the word may be written down. */
function formsOf(word: string): string[] {
  const bytes = Buffer.from(word)
  // In base64, what stands for the middle of the word depends on how many bytes are before it.
  const shifted = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    return text.slice(before === 0 ? 0 : before + 1, -2)
  })
  return [word, bytes.toString('hex'), ...shifted, encodeURIComponent(word)]
}

export class Sentinels {
  readonly #forms = new Map<string, string>()

  add(...words: readonly string[]): void {
    for (const word of words) for (const form of formsOf(word)) this.#forms.set(form, word)
  }

  /** The words that are in a text or in bytes, in whatever form. */
  in(where: string | Uint8Array): string[] {
    const text = typeof where === 'string' ? where : Buffer.from(where).toString('latin1')
    const lower = text.toLowerCase()
    // The alphabets of base64 differ in two characters.
    const urlSafe = text.replaceAll('+', '-').replaceAll('/', '_')
    const found = [...this.#forms].filter(
      ([form]) => text.includes(form) || lower.includes(form.toLowerCase()) || urlSafe.includes(form),
    )
    return [...new Set(found.map(([, word]) => word))]
  }
}
