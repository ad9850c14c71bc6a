/**
 * Caches records as JSON, as public reads show them, by CID. A CID always names the same content, so an entry never
 * becomes stale. If several records have the same content, the one that was shown last is cached.
 */
import { perContext } from '../../../platform/context.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { cidText, equalBytes } from '../../../protocol/cid.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { jsonText } from '../../../protocol/json-text.ts'
import type { VisibleRecord } from './record-store.ts'

/** Size of the cache in characters of one or two bytes: about 18,000 posts. */
const MAX_CHARS = 8 * 1024 ** 2

interface RecordView extends Pick<VisibleRecord, 'path' | 'cid'> {
  did: Did
  text: string
}

/**
 * Key of a record in the cache: part of its digest, as a number. Making a text of each CID of a page to look the
 * records up took longer than the look-up itself.
 */
const keyOf = (cid: Uint8Array): number => cid[4]! | (cid[5]! << 8) | (cid[6]! << 16) | (cid[7]! << 24)

class RecordViews {
  readonly #views = new BoundedCache<RecordView, number>(
    MAX_CHARS,
    (_, { did, path, cid, text }) => did.length + path.length + cid.length + text.length,
  )

  /** The view of a record; undefined if it is not cached. */
  kept(did: Did, { path, cid }: Pick<VisibleRecord, 'path' | 'cid'>): string | undefined {
    const view = this.#views.get(keyOf(cid))
    const isIt = view !== undefined && view.path === path && view.did === did && equalBytes(view.cid, cid)
    return isIt ? view.text : undefined
  }

  /** `{"uri":"…","cid":"…","value":{…}}`. Throws `Malformed` if the value is not valid DAG-CBOR. */
  of(did: Did, record: VisibleRecord): string {
    const known = this.kept(did, record)
    if (known !== undefined) return known
    const { path, cid, value } = record
    // Nothing in the URI needs escaping.
    const before = `{"uri":"at://${did}/${path}","cid":"${cidText(cid)}","value":`
    const text = jsonText(value, { before, after: '}' })
    // The bytes may be part of a larger buffer.
    this.#views.set(keyOf(cid), { did, path, cid: cid.slice(), text })
    return text
  }
}

export const recordViews = perContext(() => new RecordViews())
