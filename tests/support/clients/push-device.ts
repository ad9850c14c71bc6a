/** A device that receives pushes: its key, and how it opens what was sealed for it. */
import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core'
import { ECDH } from 'node:crypto'
import { formatDidKey, parseDidKey, signingKey } from '../../../src/protocol/keys.ts'
import type { SealedPush } from '../../../src/protocol/push/push-message.ts'
import { newSigningSecret } from '../../../src/platform/secrets/signing-keys.ts'

const bufferOf = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer

export class PushDevice {
  /** As a did:key. */
  readonly publicKey: string

  /** `secret` is the scalar of a P-256 key; a new one unless it is given. */
  constructor(readonly secret: Uint8Array = newSigningSecret('p256')) {
    this.publicKey = formatDidKey(signingKey('p256', secret).publicKey)
  }

  /** Returns the plaintext. Rejects unless the holder of `senderKey`, a did:key, sealed it for this device. */
  async open({ enc, ct }: Pick<SealedPush, 'enc' | 'ct'>, senderKey: string): Promise<string> {
    const suite = new CipherSuite({ kem: new DhkemP256HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() })
    const point = ECDH.convertKey(
      parseDidKey(senderKey)!.bytes,
      'prime256v1',
      undefined,
      undefined,
      'uncompressed',
    ) as Buffer
    const context = await suite.createRecipientContext({
      recipientKey: await suite.kem.importKey('raw', bufferOf(this.secret), false),
      senderPublicKey: await suite.kem.importKey('raw', bufferOf(point), true),
      enc: bufferOf(Buffer.from(enc, 'base64url')),
      info: bufferOf(Buffer.from('ezpds/notify/1')),
    })
    return new TextDecoder('utf-8', { fatal: true }).decode(await context.open(bufferOf(Buffer.from(ct, 'base64url'))))
  }
}
