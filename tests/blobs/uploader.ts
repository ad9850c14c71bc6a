/** An account that uploads, and what it sees. */
import { applyBlobChanges } from '../../src/features/blobs/blobs.ts'
import type { Did, Tid } from '../../src/protocol/identifiers.ts'
import { nextTid } from '../../src/protocol/tid.ts'
import { createAccount } from '../harness/account.ts'
import { bearer, request, type Answer } from '../harness/http.ts'
import type { TestPds } from '../harness/pds.ts'

export interface Blob {
  $type: 'blob'
  ref: { $link: string }
  mimeType: string
  size: number
}

export class Uploader {
  #revs = 0

  private constructor(
    readonly pds: TestPds,
    readonly did: Did,
    readonly token: string,
  ) {}

  static async join(pds: TestPds, name: string): Promise<Uploader> {
    const { did, accessJwt } = await createAccount(pds, name)
    return new Uploader(pds, did as Did, accessJwt)
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

  /** Revision of the account's n-th commit. */
  static revAt(n: number): Tid {
    return nextTid(null, 1_700_000_000_000_000 + n, 0)
  }

  /** A record that points at the blobs; without any, its deletion. */
  async refer(record: string, ...blobs: Blob[]): Promise<void> {
    const { ctx, clock } = this.pds
    const rev = Uploader.revAt(++this.#revs)
    await ctx.db.transaction((tx) =>
      applyBlobChanges(tx, {
        did: this.did,
        rev,
        now: clock.now(),
        replaced: [record],
        added: blobs.map(({ ref, mimeType, size }) => ({ record, cid: ref.$link, mimeType, size, validated: true })),
      }),
    )
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

export const png = new Uint8Array(Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64'))

export const randomBytes = (size: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(size)
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, Math.min(size, at + 65_536)))
  return bytes
}
