/**
 * Bytes or JSON that break the rules of their format. Thrown by every decoder in `protocol/`.
 *
 * Code that reads untrusted bytes catches exactly this class and refuses the caller. If stored bytes cause it, the
 * store is damaged, and nothing catches it.
 */
export class Malformed extends Error {
  override readonly name = 'Malformed'
  /** Path from the value that was read to its malformed part, such as `.embed.width`; empty if it is not known. */
  path = ''
}
