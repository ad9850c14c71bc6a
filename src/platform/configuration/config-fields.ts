/** How a configuration key is declared: its kind, default, environment name and documentation, in one place. */
import type { Kind } from './config-kinds.ts'

/** Keys that a default may be derived from. None of them may derive from another in a cycle. */
export interface Known {
  readonly port: number
  readonly dataDir: string
  readonly publicUrl: string
  readonly email: { readonly smtpTls: string }
}

/** A default that is derived from other keys; `text` is its form in the documentation. */
export class Derived<T> {
  constructor(
    readonly text: string,
    readonly derive: (known: Known) => T,
  ) {}
}

export const derived = <T>(text: string, derive: (known: Known) => T) => new Derived(text, derive)

interface Notes {
  doc: string
  /** Set only if the name is not `SERVICE_` and the path. An empty list: the key can be set in the file only. */
  env?: readonly string[]
  /** A key that the contract assumes without listing it. */
  addition?: boolean
  /** The command that replaces the value while the server runs. Without it, the key takes a restart. */
  replacedBy?: string
  /** Warning shown if the key is set in the file. */
  inFile?: string
}

export interface Field<T> extends Notes {
  readonly kind: Kind<T>
  /** `undefined`: the key is required. */
  readonly fallback: T | Derived<T> | undefined
  /** The default of `holdfast dev`, where it differs. */
  readonly development: T | Derived<T> | undefined
}

export const fileOnly: readonly string[] = []

interface Defaults<T> {
  default: T | Derived<T>
  development?: T | Derived<T>
}

export const field = <T>(
  kind: Kind<T>,
  { default: fallback, development, ...notes }: Notes & Defaults<NoInfer<T>>,
): Field<T> => ({
  kind,
  fallback,
  development,
  ...notes,
})

/** Declare a key that is null if it is not set. */
export const optional = <T>(kind: Kind<T>, notes: Notes): Field<T | null> => ({
  kind,
  fallback: null,
  development: undefined,
  ...notes,
})

export const required = <T>(
  kind: Kind<T>,
  { development, ...notes }: Notes & { development: T | Derived<T> },
): Field<T> => ({
  kind,
  fallback: undefined,
  development,
  ...notes,
})

/** The keys of one TOML table. */
export class Section<Fields> {
  constructor(
    readonly fields: Fields,
    /** In this section an empty string in the file counts as not set. */
    readonly blankIsUnset: boolean,
  ) {}
}

export const section = <Fields extends Record<string, Field<unknown>>>(fields: Fields, { blankIsUnset = false } = {}) =>
  new Section(fields, blankIsUnset)

export type ConfigOf<Declared> = {
  readonly [Name in keyof Declared]: Declared[Name] extends Section<infer Fields>
    ? ConfigOf<Fields>
    : Declared[Name] extends Field<infer T>
      ? T
      : never
}

/** A declared key with all its names. */
export interface Key {
  /** Dotted, as in the file: `oauth.access_token_ttl_secs`. */
  readonly name: string
  readonly section: string | null
  /** The property names under `Config`. */
  readonly path: readonly string[]
  readonly env: readonly string[]
  readonly blankIsUnset: boolean
  readonly field: Field<unknown>
}

export const ENV_PREFIX = 'SERVICE_'

/** Returns the default environment variable of a key. */
export const variableOf = (name: string): string => ENV_PREFIX + name.replaceAll('.', '_').toUpperCase()

/**
 * `accessTokenTtlSecs` becomes `access_token_ttl_secs`, `globalIpPer5min` becomes `global_ip_per_5min`, `s3Bucket`
 * becomes `s3_bucket`, `ipv6` stays.
 */
const snake = (name: string): string => name.replace(/(?<=[a-z\d])(?=[A-Z])|(?<=[a-z])(?=\d+[a-z])/g, '_').toLowerCase()

export function listKeys(declared: Record<string, Field<unknown> | Section<Record<string, Field<unknown>>>>): Key[] {
  const key = (path: string[], declaration: Field<unknown>, blankIsUnset: boolean): Key => {
    const names = path.map(snake)
    return {
      name: names.join('.'),
      section: names.length > 1 ? (names[0] ?? null) : null,
      path,
      env: declaration.env ?? [variableOf(names.join('.'))],
      blankIsUnset,
      field: declaration,
    }
  }
  return Object.entries(declared).flatMap(([name, entry]) =>
    entry instanceof Section
      ? Object.entries(entry.fields).map(([inner, declaration]) => key([name, inner], declaration, entry.blankIsUnset))
      : [key([name], entry, false)],
  )
}
