/**
 * The destination of the continuous backup, as a running server uses it: requests are repeated until they succeed, what
 * was stored is verified, and `fault` says what is wrong.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import type { LogFollowing } from '../../../platform/database/database.ts'
import { masterKeyFile } from '../../../platform/secrets/vault.ts'
import { archiveAt, bytesOf, type Archive } from './archive.ts'
import { BaseRefused, ChainBroken, ChainTaken, OlderDatabase } from './continuous-faults.ts'
import { digestOf, inChain, pieceName, sealObject, type BaseContent } from './continuous-format.ts'
import { readObject } from './continuous-reading.ts'
import { sourceOf, type Source } from './continuous-restoring.ts'
import { sealOf, unsealOf, type Seal } from './sealing.ts'

const PIECE_BYTES = 4 * 1024 ** 2
const MAX_FIRST_PIECE = 10 ** 14
/** How often an object that looks damaged is read. */
export const MAX_READS = 3
export const FIRST_PAUSE_MILLIS = 200
/** The pause after a failure doubles up to this. */
export const MAX_PAUSE_MILLIS = 30_000
/** How long a stopping server waits for the destination. The next start sends the rest. */
export const END_MILLIS = 5000

const DELETED = 'the destination of the continuous backup has lost an object, which is stored again'

interface DestinationOptions {
  place: string
  /** Aborts when the server no longer needs the destination. */
  ended: AbortSignal
  /** Whether commits are acknowledged only once the destination has them. */
  isPromised(): boolean
}

export class Destination {
  readonly archive: Archive
  /** Why segments are not stored; null if nothing is known to be wrong. */
  fault: string | null = null
  readonly #trial: { known: string | null } = { known: null }

  constructor(
    readonly ctx: Context,
    readonly options: DestinationOptions,
  ) {
    this.archive = archiveAt(options.place, ctx.config)
  }

  get isEnded(): boolean {
    return this.options.ended.aborted
  }

  noteFault(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    if (this.fault !== text) this.ctx.log.warn('continuous backup delayed; will retry', { error })
    this.fault = text
  }

  /** Wait, at most until the server no longer needs the destination. */
  pause(millis: number): Promise<void> {
    return sleep(millis, undefined, { signal: this.options.ended, ref: false }).catch((error: unknown) => {
      if (!this.isEnded) throw error
    })
  }

  /** Repeat `work` until it succeeds or is no longer wanted. */
  async untilDone(isOver: () => boolean, work: () => Promise<void>): Promise<void> {
    for (let pauseMillis = FIRST_PAUSE_MILLIS; !isOver(); pauseMillis = Math.min(2 * pauseMillis, MAX_PAUSE_MILLIS)) {
      try {
        return await work()
      } catch (error) {
        if (error instanceof ChainBroken || error instanceof BaseRefused) throw error
        this.noteFault(error)
        await this.pause(pauseMillis)
      }
    }
  }

  /**
   * Write an object, and verify that it is there. Throws `ChainTaken` if its name has another content. If the
   * destination has only part of the object, throws `ChainBroken` under `async`, where a new chain loses nothing.
   */
  async write(name: string, content: Uint8Array): Promise<void> {
    if (await this.archive.writeNew(name, content)) return
    for (let tries = 1; ; tries++) {
      const found = await readObject(this.archive, name)
      if (found === null) throw new Error(`the destination reported storing ${name}, but does not have it`)
      if (Buffer.from(found).equals(content)) return
      if (!Buffer.from(content).subarray(0, found.byteLength).equals(found))
        throw new ChainTaken(`${name} has another content: does another server use the same destination?`)
      if (tries === MAX_READS) {
        const text = `the destination sends ${found.byteLength} of the ${content.byteLength} bytes of ${name}`
        // The destination may have no more of them, and would then never accept this object.
        throw this.options.isPromised() ? new Error(text) : new ChainBroken(text)
      }
      await this.pause(FIRST_PAUSE_MILLIS)
    }
  }

  /** Store the database file as it is now, in pieces. Once `isOver`, the rest is left out. */
  async storePieces(
    file: LogFollowing['file'],
    { chain, key, number }: { chain: string; key: Uint8Array; number: number },
    isOver: () => boolean,
  ): Promise<BaseContent> {
    // Another base, or an earlier try, may have begun at the same segment: number the pieces from a random index.
    const content = { first: Math.floor(Math.random() * MAX_FIRST_PIECE), pieces: [] as string[] }
    const size = file.bytes
    for (let at = 0; at < size && !isOver(); at += PIECE_BYTES) {
      const buffer = new Uint8Array(Math.min(PIECE_BYTES, size - at))
      const count = await file.read(buffer, at)
      const index = content.first + content.pieces.length
      const header = { kind: 'piece', chain, number, index } as const
      const piece = await sealObject(key, header, buffer.subarray(0, count))
      content.pieces.push(digestOf(piece))
      await this.untilDone(isOver, () => this.write(pieceName(chain, number, index), piece))
    }
    return content
  }

  /**
   * Run `work` on what the destination has. If that is damaged, or encrypted with another key, only log the error: it
   * must not keep the server from beginning another chain.
   */
  async readFormer(work: (source: Source) => Promise<void>): Promise<void> {
    const { config, log } = this.ctx
    try {
      await work(await sourceOf(this.archive, await unsealOf(this.archive, config.backup.passphrase)))
    } catch (error) {
      if (!(error instanceof OperatorError) || error instanceof OlderDatabase) throw error
      log.warn('could not read the previous chain of the continuous backup', { error })
    }
  }

  /** Returns how the keys of chains are sealed. Throws `OperatorError` if the passphrase is another one than before. */
  seal(): Promise<Seal> {
    const { clock, config } = this.ctx
    return sealOf(this.archive, { ...config.backup, trial: this.#trial }, new Date(clock.now()))
  }

  /** Store the keys that a restore needs, unless the destination has them. `wereThere`: it had them before. */
  async storeKeys(seal: Seal, chain: string, key: Uint8Array, wereThere: boolean): Promise<void> {
    const { config, log } = this.ctx
    const keyFile = masterKeyFile(config.dataDir)
    const parts: [string, Uint8Array][] = [['key', key]]
    if (config.signingKeyMasterKey === null && existsSync(keyFile)) parts.push(['master-key', await readFile(keyFile)])
    for (const [part, content] of parts) {
      const name = inChain(chain, part) + seal.suffix
      if ((await readObject(this.archive, name)) !== null) continue
      if (wereThere) log.error(DELETED, { file: name })
      await this.archive.write(name, await seal.close(bytesOf(content)))
    }
  }

  /** Whether the destination has the key of the chain, without which nothing can be restored. */
  async hasKey(chain: string): Promise<boolean> {
    const name = inChain(chain, 'key')
    const found = await Promise.all(['', '.age'].map((suffix) => readObject(this.archive, name + suffix)))
    return found.some((each) => each !== null)
  }
}
