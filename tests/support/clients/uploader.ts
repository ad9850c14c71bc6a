/** An account that uploads, and what it sees. */
import type { Data } from '../../../src/protocol/cbor.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { archiveOf } from '../archive.ts'
import { createAccount } from './account.ts'
import { bearer, request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

export interface Blob {
  $type: 'blob'
  ref: { $link: string }
  mimeType: string
  size: number
}

export class Uploader {
  private constructor(
    readonly pds: TestPds,
    readonly did: Did,
    readonly token: string,
  ) {}

  static async join(pds: TestPds, name: string): Promise<Uploader> {
    const { did, accessJwt } = await createAccount(pds, name)
    return new Uploader(pds, did as Did, accessJwt)
  }

  /** An account that has signed in already. */
  static at(pds: TestPds, did: Did, token: string): Uploader {
    return new Uploader(pds, did, token)
  }

  post(body: RequestInit['body'], headers: Record<string, string> = {}): Promise<Answer> {
    return request(`${this.pds.url}/xrpc/com.atproto.repo.uploadBlob`, {
      method: 'POST',
      body,
      headers: { ...bearer(this.token), 'content-type': 'application/octet-stream', ...headers },
    })
  }

  async upload(bytes: Uint8Array | string, type = 'application/octet-stream'): Promise<Blob> {
    const { status, body } = await this.post(bytes as RequestInit['body'], { 'content-type': type })
    if (status !== 200) throw new Error(`upload answered ${status} ${JSON.stringify(body)}`)
    return body.blob
  }

  /** A record that points at the blobs; without any, its deletion. Answers the revision of the commit. */
  async refer(path: string, ...blobs: Blob[]): Promise<string> {
    const [collection, rkey] = path.split('/')
    const method = blobs.length === 0 ? 'deleteRecord' : 'putRecord'
    const record = { $type: collection, blobs }
    const { status, body } = await request(`${this.pds.url}/xrpc/com.atproto.repo.${method}`, {
      headers: bearer(this.token),
      json: { repo: this.did, collection, rkey, ...(blobs.length === 0 ? {} : { record }) },
    })
    if (status !== 200) throw new Error(`${method} answered ${status} ${JSON.stringify(body)}`)
    return body.commit.rev
  }

  /** Replace the repository by these records, as another server would send them. */
  async importRecords(records: Record<string, Data>): Promise<void> {
    const rev = nextTid(null, this.pds.clock.now() * 1000, 1)
    const { bytes } = archiveOf(this.did, rev, records, signingKey('p256', new Uint8Array(32).fill(3)))
    const { status, body } = await request(`${this.pds.url}/xrpc/com.atproto.repo.importRepo`, {
      method: 'POST',
      body: bytes as Uint8Array<ArrayBuffer>,
      headers: { ...bearer(this.token), 'content-type': 'application/vnd.ipld.car' },
    })
    if (status !== 200) throw new Error(`importRepo answered ${status} ${JSON.stringify(body)}`)
  }

  /** As anybody sees it. */
  read(cid: string, headers: Record<string, string> = {}, did: string = this.did): Promise<Response> {
    return fetch(`${this.pds.url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cid}`, { headers })
  }

  /** Status and error name of a read by anybody. */
  async sees(cid: string): Promise<{ status: number; error: string | null }> {
    const response = await this.read(cid)
    if (response.ok) return { status: response.status, error: null }
    return { status: response.status, error: ((await response.json()) as { error: string }).error }
  }
}

export const BLOB_NOT_FOUND = { status: 400, error: 'BlobNotFound' }
export const SERVED = { status: 200, error: null }

export const png = new Uint8Array(
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
    'base64',
  ),
)

export const randomBytes = (size: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(size)
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, Math.min(size, at + 65_536)))
  return bytes
}
