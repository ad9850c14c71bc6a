/** Reads list entries that are TOML tables. */
import { hasMembers } from '../../base/members.ts'
import { type Fault, type Kind, type Parsed, bad, checked } from './config-kinds.ts'

export interface EntryReader {
  has(name: string): boolean
  /** Returns the value of a name, or null if it is absent or invalid. Records a fault if it is invalid. */
  optional<T>(name: string, kind: Kind<T>): T | null
  /** The same, but records a fault if the name is absent too. */
  required<T>(name: string, kind: Kind<T>): T | null
  /** Record a fault of a name, or of the whole entry if the name is empty. */
  fault(name: string, fault: string): null
}

/** Returns the kind of a table that `build` reads; `build` returns null if and only if it recorded a fault. */
export function tableKind<T>(
  name: string,
  build: (entry: EntryReader) => T | null,
  fromText: (text: string) => Parsed<T>,
): Kind<T> {
  return {
    name,
    fromText,
    fromToml(table) {
      if (!hasMembers(table)) return bad('expected a table')
      const entry = new TableReader(table)
      const value = build(entry)
      return value === null || entry.faults.length > 0
        ? { ok: false, faults: entry.faults }
        : { ok: true, value, unknown: entry.unread() }
    },
  }
}

class TableReader implements EntryReader {
  readonly faults: Fault[] = []
  readonly #values: Map<string, unknown>
  readonly #known = new Set<string>()

  constructor(table: object) {
    this.#values = new Map(Object.entries(table))
  }

  has(name: string): boolean {
    this.#known.add(name)
    return this.#values.has(name)
  }

  optional<T>(name: string, kind: Kind<T>): T | null {
    if (!this.has(name)) return null
    const parsed = kind.fromToml(this.#values.get(name))
    if (parsed.ok) return parsed.value
    this.faults.push(...parsed.faults.map(({ at, fault }) => ({ at: `.${name}${at}`, fault })))
    return null
  }

  required<T>(name: string, kind: Kind<T>): T | null {
    return this.has(name) ? this.optional(name, kind) : this.fault(name, 'required')
  }

  fault(name: string, fault: string): null {
    this.faults.push({ at: name === '' ? '' : `.${name}`, fault })
    return null
  }

  /** Names that were never read. */
  unread(): string[] {
    return [...this.#values.keys()].filter((name) => !this.#known.has(name))
  }
}

/** Reject a list in which two entries have the same identity. */
export const distinct = <T>(
  kind: Kind<readonly T[]>,
  name: string,
  identify: (entry: T) => string,
): Kind<readonly T[]> =>
  checked(kind, (entries) => {
    const identities = entries.map(identify)
    return [...identities.entries()]
      .filter(([index, identity]) => identities.indexOf(identity) < index)
      .map(([index]) => ({ at: `[${index}].${name}`, fault: 'is listed twice' }))
  })
