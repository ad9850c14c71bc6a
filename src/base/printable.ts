/** Text from strangers, as it may be shown. */

/** Control characters, and characters that hide text or change its direction. Newline and tab are allowed. */
const deceptive = /[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/gu

/** Escape deceptive characters as `\uXXXX`, because output contains text from strangers. JSON keeps its meaning. */
export const printable = (text: string): string =>
  text.replace(deceptive, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
