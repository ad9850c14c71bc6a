/**
 * From a labeler's answers to what holds now. Labels are statements in time: the last one about an account and a value
 * counts, may take the value back, and may run out.
 *
 * Source: atproto "Labels".
 */
import type { Did, Millis } from '../../protocol/identifiers.ts'

export interface AccountLabel {
  did: Did
  val: string
  labelledAt: Millis
  /** Null: it does not run out. */
  expiresAt: Millis | null
}

interface Scope {
  labeler: Did
  /** Values that count; empty: all. */
  values: readonly string[]
  /** The accounts that were asked about; labels on their records do not count. */
  dids: readonly Did[]
}

/** Longer values are no label values; the lexicon has 128 bytes. */
const MAX_VALUE_CHARS = 128

type Statement = AccountLabel & { negated: boolean }

/** Collects the labels of one question, page after page. */
export class LabelTally {
  readonly #scope: Scope
  readonly #dids: ReadonlySet<unknown>
  readonly #last = new Map<string, Statement>()

  constructor(scope: Scope) {
    this.#scope = scope
    this.#dids = new Set(scope.dids)
  }

  /** Takes what claims to be a label; what is none of ours is ignored. */
  add(label: unknown): void {
    const statement = this.#read(label)
    if (statement === null) return
    const key = `${statement.did} ${statement.val}`
    const before = this.#last.get(key)
    if (!before || statement.labelledAt >= before.labelledAt) this.#last.set(key, statement)
  }

  holding(now: Millis): AccountLabel[] {
    return [...this.#last.values()]
      .filter(({ negated, expiresAt }) => !negated && (expiresAt === null || expiresAt > now))
      .map(({ did, val, labelledAt, expiresAt }) => ({ did, val, labelledAt, expiresAt }))
  }

  #read(label: unknown): Statement | null {
    if (typeof label !== 'object' || label === null) return null
    const { src, uri, val, neg, cts, exp } = label as Record<string, unknown>
    const { labeler, values } = this.#scope
    if (src !== labeler || !this.#dids.has(uri) || typeof val !== 'string' || val.length > MAX_VALUE_CHARS) return null
    if (values.length > 0 && !values.includes(val)) return null
    return { did: uri as Did, val, negated: neg === true, labelledAt: instantOf(cts) ?? 0, expiresAt: instantOf(exp) }
  }
}

function instantOf(text: unknown): Millis | null {
  const instant = typeof text === 'string' ? Date.parse(text) : NaN
  return Number.isNaN(instant) ? null : instant
}
