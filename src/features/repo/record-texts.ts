/** Records as JSON, by CID. A CID names its content for good, so a text is right for as long as it is kept. */
import { perContext } from '../../platform/context.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import { cidText } from '../../protocol/cid.ts'
import { jsonText } from '../../protocol/json-text.ts'

/** Texts kept, in characters of one or two bytes: some 20,000 posts. */
const MAX_CHARS = 8 * 1024 ** 2

class RecordTexts {
  readonly #texts = new BoundedCache<string>(MAX_CHARS, (key, text) => key.length + text.length)

  /** The text of a record, if it is kept. */
  kept(cid: Uint8Array): string | undefined {
    return this.#texts.get(cid.toHex())
  }

  /** `"cid":"…","value":{…}`. Throws `Malformed` when `value` is no block. */
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
