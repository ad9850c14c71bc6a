/** Paths that tell people where in a value something is, such as `$.record.embed.images[0]`. */

const MAX_NAME_CHARS = 64

/** Returns the step from an object or an array to its member. A long name is cut off. */
export function pathSegment(part: string | number): string {
  if (typeof part === 'number') return `[${part}]`
  if (part.length > MAX_NAME_CHARS) return `[${JSON.stringify(`${part.slice(0, MAX_NAME_CHARS)}…`)}]`
  return /^[A-Za-z_$][A-Za-z0-9_]*$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`
}
