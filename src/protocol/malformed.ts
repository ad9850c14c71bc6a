/**
 * Bytes or JSON that break the rules of their format. Thrown by every decoder in `protocol/`.
 *
 * Who reads bytes of a stranger catches exactly this class and refuses the caller. For our own stored bytes it is
 * a fault of the store, and flies.
 */
export class Malformed extends Error {
  override readonly name = 'Malformed'
}
