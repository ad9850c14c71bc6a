/** The input of a check, and its finding: the state, and the remedy if something is wrong. */
import type { Config } from '../../../platform/configuration/config.ts'
import { ownUrl } from '../../../platform/configuration/own-url.ts'
import { sql, type Database } from '../../../platform/database/database.ts'
import { askJson } from '../../../platform/network/json-answer.ts'
import type { Mailer } from '../../../platform/network/mailer.ts'
import type { Outbound } from '../../../platform/network/outbound.ts'
import type { Resolver } from '../../../platform/network/resolver.ts'

export type Finding =
  | { state: 'ok'; text: string }
  | { state: 'warning' | 'fault'; text: string; remedy: string }
  /** The check could not run; `text` says why. */
  | { state: 'skipped'; text: string }

export interface Patient {
  config: Config
  resolver: Resolver
  upstream: Outbound
  mailer: Mailer
  /** Files with the secrets of the configuration; some may not exist. The running server knows none. */
  settings?: readonly string[]
  now(): number
}

export interface Check {
  name: string
  /** Name of an earlier check that must pass first; otherwise this one would blame the wrong cause. */
  needs?: string
  run(patient: Patient): Promise<Finding>
}

export const ok = (text: string): Finding => ({ state: 'ok', text })
export const warning = (text: string, remedy: string): Finding => ({ state: 'warning', text, remedy })
export const fault = (text: string, remedy: string): Finding => ({ state: 'fault', text, remedy })
export const skipped = (text: string): Finding => ({ state: 'skipped', text })
export const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Timeout of a request or connection that a check makes. */
export const TIMEOUT_MILLIS = 8000

/** Fetch a URL. `json` is undefined if the body is not JSON. Returns the reason if there is no response. */
export async function ask({ upstream }: Patient, url: string): Promise<{ status: number; json: unknown } | string> {
  const answer = await askJson(upstream, url)
  return answer.ok ? answer : answer.detail
}

/** Whether a database server has a table: it may not have been migrated yet. */
export const hasTable = async (db: Database, table: string): Promise<boolean> =>
  (await db.get(sql`SELECT 1 FROM pg_tables WHERE tablename = ${table} AND schemaname = current_schema()`)) !== null

/** What a machine that follows another one says of itself. */
export interface Follower {
  role: 'follower'
  /** That it follows another machine, and which. */
  reason: string
  behindMillis: number | null
  fault: string | null
}

/** Returns what "holdfast follow" on this machine says, or null if it does not run. */
export async function followerHere(patient: Patient): Promise<Follower | null> {
  const answer = await ask(patient, `${ownUrl(patient.config)}/readyz`)
  const said = typeof answer === 'string' ? null : (answer.json as Partial<Follower> | null | undefined)
  return said?.role === 'follower' ? (said as Follower) : null
}
