/**
 * Caches records as JSON by CID. A CID always names the same content, which means that an entry never becomes stale.
 */
import { perContext } from '../../../platform/context.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { cidText } from '../../../protocol/cid.ts'
import { jsonText } from '../../../protocol/json-text.ts'

/** Size of the cache in characters of one or two bytes: about 20,000 posts. */
const MAX_CHARS = 8 * 1024 ** 2

class RecordTexts {
  readonly #texts = new BoundedCache<string>(MAX_CHARS, (key, text) => key.length + text.length)

  /** The text of a record; undefined if it is not cached. */
  kept(cid: Uint8Array): string | undefined {
    return this.#texts.get(cid.toHex())
  }

  /** `"cid":"…","value":{…}`. Throws `Malformed` if `value` is not valid DAG-CBOR. */
  of({ cid, value }: { cid: Uint8Array; value: Uint8Array }): string {
    const key = cid.toHex()
    const known = this.#texts.get(key)
    if (known !== undefined) return known
    const text = `"cid":"${cidText(cid)}","value":${jsonText(value)}`
    this.#texts.set(key, text)
    return text
  }
}

export const recordTexts = perContext(() => new RecordTexts())
