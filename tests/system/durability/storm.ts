/**
 * Writers that keep a ledger: what the server has acknowledged must be there ever after; what was under way when it was
 * killed may be there or not, but must then be one of the two states on either side of the write.
 */
import { bearer, request, type Answer } from '../../support/clients/http.ts'

export const COLLECTION = 'com.example.storm'

/** The CID of a record, or `null` where there is none. */
type State = string | null

interface Entry {
  state: State
  /** A write was sent and not answered: the record may also be what that write made of it. */
  unanswered: boolean
}

/** A ledger as it was. */
export interface Remembered {
  records: ReadonlyMap<string, Entry>
  commits: number
  blobs: number
}

/** Until somebody who was told to come back does. */
const COME_BACK_MILLIS = 50

export interface Commit {
  cid: string
  rev: string
}

export interface Blob {
  cid: string
  bytes: Uint8Array
}

export class StormAccount {
  readonly records = new Map<string, Entry>()
  readonly commits: Commit[] = []
  readonly blobs: Blob[] = []
  /** Comes back when it is told to, instead of failing. */
  isPatient = false
  #number = 0

  private constructor(
    readonly did: string,
    readonly token: string,
  ) {}

  static async create(url: string, name: string): Promise<StormAccount> {
    const account = { handle: `${name}.test`, email: `${name}@example.com`, password: 'storm-password' }
    const { status, body } = await request(`${url}/xrpc/com.atproto.server.createAccount`, { json: account })
    if (status !== 200) throw new Error(`createAccount: ${status} ${JSON.stringify(body)}`)
    return new StormAccount(body.did, body.accessJwt)
  }

  /** Write one thing after the other until the server is gone, or `isOver`. */
  async writeUntilGone(url: string, writer: number, isOver = () => false): Promise<void> {
    const own: string[] = []
    for (let step = 0; !isOver(); step++) {
      try {
        await this.#step(url, writer, step, own)
      } catch (error) {
        if (!(error instanceof Refused)) return
        if (!this.isPatient || error.status !== 503) throw error
        await Bun.sleep(COME_BACK_MILLIS)
      }
    }
  }

  async #step(url: string, writer: number, step: number, own: string[]): Promise<void> {
    const rkey = `w${writer}-${this.#number++}`
    const newest = own.at(-1)
    if (step % 7 === 3 && newest !== undefined)
      return this.#write(url, 'putRecord', [newest], { rkey: newest, record: record(step) })
    if (step % 7 === 5 && newest !== undefined) return this.#write(url, 'deleteRecord', [own.pop()!], { rkey: newest })
    if (step % 7 === 6) {
      const rkeys = [0, 1, 2].map((part) => `${rkey}-${part}`)
      const writes = rkeys.map((each) => ({
        $type: 'com.atproto.repo.applyWrites#create',
        collection: COLLECTION,
        rkey: each,
        value: record(step),
      }))
      return this.#write(url, 'applyWrites', rkeys, { writes })
    }
    const blob = step % 7 === 1 ? await this.#upload(url, rkey) : undefined
    await this.#write(url, 'createRecord', [rkey], {
      rkey,
      record: { ...record(step), ...(blob && { blob: blob.reference }) },
    })
    // A record with a blob stays as it is: without it, nobody could read the blob.
    if (blob) this.blobs.push(blob)
    else own.push(rkey)
  }

  async #write(
    url: string,
    method: 'createRecord' | 'putRecord' | 'deleteRecord' | 'applyWrites',
    rkeys: string[],
    input: object,
  ): Promise<void> {
    for (const rkey of rkeys) this.records.set(rkey, { state: this.records.get(rkey)?.state ?? null, unanswered: true })
    const json = { repo: this.did, ...(method === 'applyWrites' ? {} : { collection: COLLECTION }), ...input }
    const answer = await request(`${url}/xrpc/com.atproto.repo.${method}`, { json, headers: bearer(this.token) })
    if (answer.status !== 200) throw new Refused(method, answer)
    const cids: State[] =
      method === 'applyWrites'
        ? answer.body.results.map((result: { cid: string }) => result.cid)
        : [answer.body.cid ?? null]
    for (const [index, rkey] of rkeys.entries())
      this.records.set(rkey, { state: cids[index] ?? null, unanswered: false })
    this.commits.push(answer.body.commit)
  }

  async #upload(url: string, name: string): Promise<Blob & { reference: unknown }> {
    const bytes = new TextEncoder().encode(`${this.did} ${name}`)
    const answer = await request(`${url}/xrpc/com.atproto.repo.uploadBlob`, {
      method: 'POST',
      body: bytes,
      headers: { ...bearer(this.token), 'content-type': 'text/plain' },
    })
    if (answer.status !== 200) throw new Refused('uploadBlob', answer)
    return { cid: answer.body.blob.ref.$link, bytes, reference: answer.body.blob }
  }

  /** What is acknowledged by now. */
  remember(): Remembered {
    return { records: new Map(this.records), commits: this.commits.length, blobs: this.blobs.length }
  }

  /** Whatever was acknowledged since may be lost. */
  fallBackTo({ records, commits, blobs }: Remembered): void {
    for (const [rkey, { state }] of this.records)
      if (this.records.get(rkey) !== records.get(rkey)) this.records.set(rkey, { state, unanswered: true })
    this.commits.length = commits
    this.blobs.length = blobs
  }

  /**
   * Compare the ledger with the repository as it is after a restart, and let unanswered writes settle as they did.
   * `found` maps record keys to CIDs. Returns what is wrong, in words.
   */
  settle(found: ReadonlyMap<string, string>): string[] {
    const faults = [...found.keys()]
      .filter((rkey) => !this.records.has(rkey))
      .map((rkey) => `${rkey} was never written`)
    for (const [rkey, { state, unanswered }] of this.records) {
      const actual = found.get(rkey) ?? null
      if (!unanswered && actual !== state) faults.push(`${rkey} is ${actual}, but ${state} was acknowledged`)
      this.records.set(rkey, { state: actual, unanswered: false })
    }
    return faults
  }
}

/** The server answered, and said no: not what a kill looks like. */
class Refused extends Error {
  readonly status: number

  constructor(method: string, { status, body }: Answer) {
    super(`${method}: ${status} ${JSON.stringify(body)}`)
    this.status = status
  }
}

const record = (step: number) => ({ $type: COLLECTION, text: `step ${step} `.repeat(20), step })
