/** Provides the bytes of a block as a buffer for decoders. */

const KEPT_BYTES = 64 * 1024
const kept = Buffer.allocUnsafeSlow(KEPT_BYTES)

/**
 * Returns the bytes as a buffer that is valid until the next call. A small array is copied: sharing its memory costs
 * ten times as much, because the engine must first move it.
 */
export function readable(bytes: Uint8Array): Buffer {
  if (bytes.length > KEPT_BYTES) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  kept.set(bytes)
  return kept.subarray(0, bytes.length)
}
