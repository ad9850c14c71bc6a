/**
 * A passphrase as an identity of the age library. The runtime derives the key on another thread: the library's own
 * derivation would block every request of the server. Source: age-encryption.org/v1, "The scrypt recipient type".
 */
import { scrypt } from 'node:crypto'
import type { Identity } from 'age-encryption'

const LABEL = 'age-encryption.org/v1/scrypt'
const SALT_BYTES = 16
const KEY_BYTES = 32
const NONCE_BYTES = 12
const BLOCK_SIZE = 8
/** A gibibyte of memory. No backup is written at a higher cost. */
const MAX_WORK_FACTOR = 20

/** Returns an identity that opens files with this passphrase. `unwrapFileKey` throws if the file's cost is too high. */
export const identityOfPassphrase = (passphrase: string): Identity => ({
  async unwrapFileKey(stanzas) {
    const [only] = stanzas
    const [type, salt = '', workFactor = ''] = only?.args ?? []
    if (only === undefined || stanzas.length !== 1 || type !== 'scrypt') return null
    const saltBytes = Buffer.from(salt, 'base64')
    const factor = /^[1-9]\d?$/.test(workFactor) ? Number(workFactor) : Infinity
    if (saltBytes.length !== SALT_BYTES || factor > MAX_WORK_FACTOR)
      throw new Error('the file has no salt, or its key costs too much to derive')
    const key = await derived(passphrase, Buffer.concat([Buffer.from(LABEL), saltBytes]), 2 ** factor)
    const { chacha20poly1305 } = await import('@noble/ciphers/chacha.js')
    try {
      return chacha20poly1305(key, new Uint8Array(NONCE_BYTES)).decrypt(only.body)
    } catch (error) {
      throw new Error('the key of another passphrase', { cause: error })
    }
  },
})

const derived = (passphrase: string, salt: Uint8Array, cost: number): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(
      passphrase,
      salt,
      KEY_BYTES,
      { N: cost, r: BLOCK_SIZE, p: 1, maxmem: 256 * BLOCK_SIZE * cost },
      (error, key) => (error ? reject(error) : resolve(key)),
    ),
  )
