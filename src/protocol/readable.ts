/** Bytes of a block, where a decoder reads them. */

const KEPT_BYTES = 64 * 1024
const kept = Buffer.allocUnsafeSlow(KEPT_BYTES)

/**
 * The same bytes as a buffer, good until the next call. Few are copied: to share the memory of a small array costs ten
 * times as much, for it must first be moved to where it can be shared.
 */
export function readable(bytes: Uint8Array): Buffer {
  if (bytes.length > KEPT_BYTES) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  kept.set(bytes)
  return kept.subarray(0, bytes.length)
}
