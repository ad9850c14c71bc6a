/**
 * The plaintext of a push, before it is sealed for the device.
 *
 * A push passes through a relay and Apple, which see its length. So the plaintext is padded until the body that the
 * relay sends to Apple has one of three lengths: the bucket, or one byte less where base64url has no such length.
 */

export interface PushMessage {
  /** Tells the app what to open. */
  type: string
  /** What the device shows. */
  title: string
  body: string
  data?: Readonly<Record<string, string | null>>
}

/** A sealed message, as it is given to the relay. */
export interface SealedPush {
  /** The number of the sender key; an unsigned integer of 32 bits. */
  kid: number
  /** The ephemeral public key of this seal, base64url. */
  enc: string
  /** The ciphertext with its tag, base64url. */
  ct: string
}

const bucketBytes = [1024, 2048, 3584] as const
const ENC_CHARS = 87
const TAG_BYTES = 16

/**
 * Returns the body that the relay sends to Apple. It is never sent from here: the padding is computed from its length.
 */
export const relayedBody = ({ kid, enc, ct }: SealedPush): string =>
  `{"aps":{"alert":{"title":"Custos","body":"Encrypted notification"},"mutable-content":1},"ezpds":{"v":1,"kid":${kid},"enc":"${enc}","ct":"${ct}"}}`

/**
 * Returns the padded plaintext as UTF-8: compact JSON with `type`, `title`, `body`, `data` unless there is none, and
 * `pad`, which holds only spaces. Returns null if the message does not fit the largest bucket; it must then be dropped,
 * because neither a message without padding nor a part of a message may be sent.
 */
export function paddedPlaintext({ type, title, body, data = {} }: PushMessage, kid: number): Uint8Array | null {
  const members = Object.keys(data).length === 0 ? { type, title, body } : { type, title, body, data }
  const plaintext = (padChars: number) =>
    new TextEncoder().encode(JSON.stringify({ ...members, pad: ' '.repeat(padChars) }))
  const unpadded = plaintext(0)
  const pads = bucketBytes.map((maxBytes) => maxPlaintextBytes(maxBytes, kid) - unpadded.byteLength)
  const padChars = pads.find((chars) => chars >= 0)
  return padChars === undefined ? null : plaintext(padChars)
}

/** Returns how long a plaintext may be for a body within the bucket. Base64url makes four characters of three bytes. */
function maxPlaintextBytes(bodyBytes: number, kid: number): number {
  const ciphertextChars = bodyBytes - relayedBody({ kid, enc: 'x'.repeat(ENC_CHARS), ct: '' }).length
  return Math.floor((ciphertextChars * 3) / 4) - TAG_BYTES
}
