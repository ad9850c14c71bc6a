/**
 * Determine the labels in force from the labels that a labeler returns.
 *
 * For each account and value, the label with the latest `cts` counts. It may negate the value (`neg`) and may expire
 * (`exp`).
 *
 * Source: atproto "Labels".
 */
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface AccountLabel {
  did: Did
  val: string
  labelledAt: Millis
  /** Null if the label does not expire. */
  expiresAt: Millis | null
}

interface Scope {
  labeler: Did
  /** Label values to accept; empty accepts all. */
  values: readonly string[]
  /** The accounts of the query. Labels on their records are ignored. */
  dids: readonly Did[]
}

/** Longer values are not label values: the lexicon allows 128 bytes. */
const MAX_VALUE_CHARS = 128
/** Values of one account, negated ones included. A labeler that has more to say about it is out of order. */
export const MAX_VALUES_PER_ACCOUNT = 500

type Statement = AccountLabel & { negated: boolean }

/** Collects the labels that one query returns, page by page. */
export class LabelTally {
  readonly #scope: Scope
  readonly #dids: ReadonlySet<unknown>
  readonly #last = new Map<string, Statement>()
  readonly #counts = new Map<Did, number>()

  constructor(scope: Scope) {
    this.#scope = scope
    this.#dids = new Set(scope.dids)
  }

  /**
   * Add an unverified label. Ignores malformed labels and those outside the scope. Returns false if the account has too
   * many.
   */
  add(label: unknown): boolean {
    const statement = this.#read(label)
    if (statement === null) return true
    const { did, val, labelledAt } = statement
    const key = `${did} ${val}`
    const before = this.#last.get(key)
    if (before === undefined) {
      const count = (this.#counts.get(did) ?? 0) + 1
      if (count > MAX_VALUES_PER_ACCOUNT) return false
      this.#counts.set(did, count)
    }
    if (!before || labelledAt >= before.labelledAt) this.#last.set(key, statement)
    return true
  }

  /** Returns the labels in force at `now`: the last of each account and value, unless negated or expired. */
  holding(now: Millis): AccountLabel[] {
    return [...this.#last.values()]
      .filter(({ negated, expiresAt }) => !negated && (expiresAt === null || expiresAt > now))
      .map(({ did, val, labelledAt, expiresAt }) => ({ did, val, labelledAt, expiresAt }))
  }

  #read(label: unknown): Statement | null {
    if (typeof label !== 'object' || label === null) return null
    const { src, uri, val, neg, cts, exp } = label as Record<string, unknown>
    const { labeler, values } = this.#scope
    if (src !== labeler || !this.#dids.has(uri) || !isValue(val)) return null
    if (values.length > 0 && !values.includes(val)) return null
    return { did: uri as Did, val, negated: neg === true, labelledAt: instantOf(cts) ?? 0, expiresAt: instantOf(exp) }
  }
}

/** No label has control characters, some of which cannot be stored. */
const isValue = (val: unknown): val is string =>
  typeof val === 'string' && val.length <= MAX_VALUE_CHARS && !/\p{Cc}/u.test(val)

function instantOf(text: unknown): Millis | null {
  const instant = typeof text === 'string' ? Date.parse(text) : NaN
  return Number.isNaN(instant) ? null : instant
}
