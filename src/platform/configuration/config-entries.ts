/** A list entry that is a TOML table of its own. */
import { type Fault, type Kind, type Parsed, bad, checked } from './config-kinds.ts'

export interface EntryReader {
  has(name: string): boolean
  /** The value of a name, or `null` when it is absent or unfit; being unfit is noted as a fault. */
  optional<T>(name: string, kind: Kind<T>): T | null
  /** The same, where being absent is a fault too. */
  required<T>(name: string, kind: Kind<T>): T | null
  /** Note a fault of a name, or of the whole entry. */
  fault(name: string, fault: string): null
}

/** Read one table by `build`, which answers `null` exactly when a fault was noted. */
export function tableKind<T>(name: string, build: (entry: EntryReader) => T | null, fromText: (text: string) => Parsed<T>): Kind<T> {
  return {
    name,
    fromText,
    fromToml(table) {
      if (typeof table !== 'object' || table === null || Array.isArray(table)) return bad('expected a table')
      const entry = new TableReader(table)
      const value = build(entry)
      return value === null || entry.faults.length > 0 ? { ok: false, faults: entry.faults } : { ok: true, value, unknown: entry.unread() }
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

  /** Names nobody asked for. */
  unread(): string[] {
    return [...this.#values.keys()].filter((name) => !this.#known.has(name))
  }
}

/** Refuse a list in which two entries share what should tell them apart. */
export const distinct = <T>(kind: Kind<readonly T[]>, name: string, identify: (entry: T) => string): Kind<readonly T[]> =>
  checked(kind, (entries) => {
    const identities = entries.map(identify)
    return [...identities.entries()]
      .filter(([index, identity]) => identities.indexOf(identity) < index)
      .map(([index]) => ({ at: `[${index}].${name}`, fault: 'is listed twice' }))
  })
