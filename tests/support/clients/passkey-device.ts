/**
 * A device that keeps passkeys, and the browser in front of it. It does what Web Authentication says, or anything else
 * that a hostile one could.
 */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'

/** How an answer differs from that of an honest device in an honest browser. */
export interface Tampering {
  origin?: string
  /** Where the page claims to be embedded. */
  crossOrigin?: boolean
  topOrigin?: string
  type?: string
  challenge?: string
  rpId?: string
  /** Whether the person touched the device, and was verified by it. */
  isPresent?: boolean
  isVerified?: boolean
  count?: number
  /** Of the attestation, with what it states. */
  format?: string
  statement?: Cbor
  /** Id and key of another credential. */
  id?: Buffer
  userHandle?: string | null
  signer?: KeyObject
  algorithm?: number
  /** Bytes after the data of the device. */
  rest?: Buffer
  /** Replaces the public key in COSE. */
  key?: Buffer
}

interface Credential {
  id: Buffer
  rpId: string
  userHandle: string
  privateKey: KeyObject
  count: number
}

/** The options of `navigator.credentials`, as a page has them. */
export interface PageOptions {
  challenge: string
  rp?: { id: string }
  rpId?: string
  user?: { id: string; name: string }
  excludeCredentials?: { id: string }[]
  allowCredentials?: { id: string }[]
  [more: string]: unknown
}

type KeyType = 'p256' | 'ed25519' | 'rsa'

export class PasskeyDevice {
  readonly credentials: Credential[] = []

  /** `counts`: whether it counts signatures, which those that copy their keys to others do not. */
  constructor(
    readonly origin: string,
    readonly counts = true,
  ) {}

  /** Returns the answer of the browser, as the page sends it. */
  create(options: PageOptions, tampering: Tampering = {}, type: KeyType = 'p256'): string {
    const { privateKey, cose } = newKey(type)
    const id = tampering.id ?? randomBytes(32)
    const rpId = options.rp!.id
    this.credentials.push({ id, rpId, userHandle: options.user!.id, privateKey, count: 0 })
    const length = Buffer.alloc(2)
    length.writeUInt16BE(id.byteLength)
    const key =
      tampering.key ?? cbor(tampering.algorithm === undefined ? cose : new Map([...cose, [3, tampering.algorithm]]))
    const credential = Buffer.concat([Buffer.alloc(16), length, id, key])
    const data = Buffer.concat([
      this.#dataOf(rpId, 0, { ...tampering, flag: 0x40 }),
      credential,
      tampering.rest ?? Buffer.alloc(0),
    ])
    const attestation = new Map<Cbor, Cbor>([
      ['fmt', tampering.format ?? 'none'],
      ['attStmt', tampering.statement ?? new Map()],
      ['authData', data],
    ])
    return answer(id, {
      clientDataJSON: this.#clientData('webauthn.create', options, tampering).toString('base64url'),
      attestationObject: cbor(attestation).toString('base64url'),
      transports: ['internal', 'hybrid'],
    })
  }

  /** Uses the first passkey that the page may mean. */
  get(options: PageOptions, tampering: Tampering = {}): string {
    const allowed = options.allowCredentials ?? []
    const credential = this.credentials.find(
      ({ id, rpId }) =>
        rpId === options.rpId && (allowed.length === 0 || allowed.some((one) => one.id === id.toString('base64url'))),
    )
    if (credential === undefined) throw new Error('the device has no passkey for this page')
    if (this.counts) credential.count++
    const data = Buffer.concat([
      this.#dataOf(credential.rpId, credential.count, { ...tampering, flag: 0 }),
      tampering.rest ?? Buffer.alloc(0),
    ])
    const clientData = this.#clientData('webauthn.get', options, tampering)
    const signed = Buffer.concat([data, createHash('sha256').update(clientData).digest()])
    const key = tampering.signer ?? credential.privateKey
    return answer(tampering.id ?? credential.id, {
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', signed, key).toString('base64url'),
      userHandle: tampering.userHandle === undefined ? credential.userHandle : tampering.userHandle,
    })
  }

  #clientData(type: string, { challenge }: PageOptions, tampering: Tampering): Buffer {
    const { crossOrigin = false, topOrigin } = tampering
    return Buffer.from(
      JSON.stringify({
        type: tampering.type ?? type,
        challenge: tampering.challenge ?? challenge,
        origin: tampering.origin ?? this.origin,
        crossOrigin,
        ...(topOrigin !== undefined && { topOrigin }),
      }),
    )
  }

  /** Web Authentication, 6.1: the hash of the host, flags, and the count. */
  #dataOf(
    rpId: string,
    count: number,
    { isPresent = true, isVerified = true, flag, ...tampering }: Tampering & { flag: number },
  ): Buffer {
    const head = Buffer.alloc(37)
    createHash('sha256')
      .update(tampering.rpId ?? rpId)
      .digest()
      .copy(head)
    // Of a device that copies its keys: eligible for it, and done.
    const copied = this.counts ? 0 : 0x18
    head.writeUInt8((isPresent ? 1 : 0) | (isVerified ? 4 : 0) | copied | flag, 32)
    head.writeUInt32BE(tampering.count ?? count, 33)
    return head
  }
}

const answer = (id: Buffer, response: object): string =>
  JSON.stringify({ id: id.toString('base64url'), rawId: id.toString('base64url'), type: 'public-key', response })

/** The private key, and the public one in COSE (RFC 9053, section 7). */
function newKey(type: KeyType): { privateKey: KeyObject; cose: Map<Cbor, Cbor> } {
  const bytes = (text: string | undefined) => Buffer.from(text!, 'base64url')
  if (type === 'rsa') {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const { n, e } = publicKey.export({ format: 'jwk' })
    return {
      privateKey,
      cose: new Map<Cbor, Cbor>([
        [1, 3],
        [3, -257],
        [-1, bytes(n)],
        [-2, bytes(e)],
      ]),
    }
  }
  if (type === 'ed25519') {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const { x } = publicKey.export({ format: 'jwk' })
    return {
      privateKey,
      cose: new Map<Cbor, Cbor>([
        [1, 1],
        [3, -8],
        [-1, 6],
        [-2, bytes(x)],
      ]),
    }
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x, y } = publicKey.export({ format: 'jwk' })
  return {
    privateKey,
    cose: new Map<Cbor, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, bytes(x)],
      [-3, bytes(y)],
    ]),
  }
}

// CBOR, as far as devices write it (RFC 8949)

export type Cbor = number | string | Buffer | Cbor[] | Map<Cbor, Cbor>

function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value])
  if (value < 0x100) return Buffer.from([(major << 5) | 24, value])
  return Buffer.from([(major << 5) | 25, value >> 8, value & 0xff])
}

export function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.byteLength), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)])
  return Buffer.concat([head(5, value.size), ...[...value].flatMap(([key, one]) => [cbor(key), cbor(one)])])
}
