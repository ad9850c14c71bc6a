/**
 * Bytes or JSON that break the rules of their format. Thrown by every decoder in `protocol/`.
 *
 * Code that reads the bytes of a stranger catches exactly this class, and refuses the caller. From our own stored bytes
 * it means that the store is damaged, and nothing catches it.
 */
export class Malformed extends Error {
  override readonly name = 'Malformed'
}
