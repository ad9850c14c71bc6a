/** An open wallet: its contents and keys, and clients of its server and directory. */
import { randomBytes } from 'node:crypto'
import { base64url } from '../protocol/base64url.ts'
import { OperatorError } from '../base/operator-error.ts'
import type { Did, Millis } from '../protocol/identifiers.ts'
import { formatDidKey, signingKey, type SigningKey } from '../protocol/keys.ts'
import type { Signer } from '../protocol/signed-envelope.ts'
import { WALLET_FORMAT, type WalletContents } from './wallet-contents.ts'
import { WalletDirectory } from './wallet-directory.ts'
import type { WalletFile } from './wallet-file.ts'
import { ServerRefusal } from '../base/server-request.ts'
import { WalletServer } from './wallet-server.ts'

const KEY_BYTES = 32
const NONCE_BYTES = 32
/**
 * Clock difference in seconds that an error message mentions. Servers accept proofs for a minute, and the time of the
 * request counts too.
 */
const NOTABLE_SECS = 45

/** The contents of a new wallet, which has only a device key. */
export const freshContents = (server: string, directory: string): WalletContents => ({
  format: WALLET_FORMAT,
  server,
  directory,
  did: null,
  handle: null,
  deviceKey: randomBytes(KEY_BYTES).toString('hex'),
  recoveryKey: null,
  keychainShare: null,
  paperShare: null,
  walletSession: null,
  session: null,
  elsewhere: {},
  unfinished: null,
})

const platforms: Partial<Record<NodeJS.Platform, string>> = { darwin: 'macos', win32: 'windows', android: 'android' }
/** What kind of device this is, in the words of the ceremony. */
export const devicePlatform = (): string => platforms[process.platform] ?? 'linux'

/** The members of a request that prove possession of the device key. */
export interface WalletProof {
  signingKey: string
  timestamp: number
  nonce: string
  signature: string
}

export class Wallet {
  readonly #file: Pick<WalletFile, 'write'>
  #contents: WalletContents
  readonly now: () => Millis
  #server: WalletServer

  constructor(file: Pick<WalletFile, 'write'>, contents: WalletContents, now: () => Millis) {
    this.#file = file
    this.#contents = contents
    this.now = now
    this.#server = new WalletServer(contents.server, contents.directory)
  }

  get contents(): Readonly<WalletContents> {
    return this.#contents
  }

  /** The server that hosts the account now, even after a move. */
  get server(): WalletServer {
    const { server, directory } = this.#contents
    if (this.#server.url !== server) this.#server = new WalletServer(server, directory)
    return this.#server
  }

  get directory(): WalletDirectory {
    return new WalletDirectory(this.#contents.directory)
  }

  /** Change the contents and write them to the file. Call it before any action that depends on the change. */
  async update(changes: Partial<WalletContents>): Promise<void> {
    const contents = { ...this.#contents, ...changes }
    await this.#file.write(contents)
    this.#contents = contents
  }

  get did(): Did {
    const { did } = this.#contents
    if (did === null) throw new OperatorError('this wallet has no identity yet')
    return did as Did
  }

  get deviceKey(): SigningKey {
    return signingKey('p256', Buffer.from(this.#contents.deviceKey, 'hex'))
  }

  /** The device key as a did:key. */
  get deviceDid(): string {
    return formatDidKey(this.deviceKey.publicKey)
  }

  /** Sign the envelope that `envelopeOf` makes, for this server and the current time. */
  async prove(envelopeOf: (signer: Signer) => Uint8Array): Promise<WalletProof> {
    const { did: aud } = await this.server.describe()
    const key = this.deviceKey
    const signer: Signer = {
      aud,
      did: this.did,
      key: formatDidKey(key.publicKey),
      timestamp: Math.floor(this.now() / 1000),
      nonce: base64url(randomBytes(NONCE_BYTES)),
    }
    const signature = base64url(key.sign(envelopeOf(signer)))
    return { signingKey: signer.key, timestamp: signer.timestamp, nonce: signer.nonce, signature }
  }

  /**
   * Send a proof. The server does not say why it refuses a proof, so if the clocks differ noticeably, the error
   * mentions that.
   */
  async sendProof<Result>(send: () => Promise<Result>): Promise<Result> {
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof ServerRefusal) || error.status !== 401 || error.serverTime === null) throw error
      const secsAhead = Math.round((this.now() - error.serverTime) / 1000)
      if (Math.abs(secsAhead) < NOTABLE_SECS) throw error
      const which = secsAhead > 0 ? 'ahead of' : 'behind'
      throw new OperatorError(
        `${error.message}. The clock of this device is ${Math.abs(secsAhead)} seconds ${which} the server's: set it`,
        {
          cause: error,
        },
      )
    }
  }
}
