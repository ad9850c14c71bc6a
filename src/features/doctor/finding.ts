/** What a check is given, and what it answers: how things are, and what to do about it. */
import type { Config } from '../../platform/configuration/config.ts'
import type { Mailer } from '../../platform/network/mailer.ts'
import type { Outbound } from '../../platform/network/outbound.ts'
import type { Resolver } from '../../platform/network/resolver.ts'

export type Finding =
  | { state: 'ok'; text: string }
  | { state: 'warning' | 'fault'; text: string; remedy: string }
  /** It could not be looked at; why is a finding of its own. */
  | { state: 'skipped'; text: string }

export interface Patient {
  config: Config
  resolver: Resolver
  upstream: Outbound
  mailer: Mailer
  now(): number
}

export interface Check {
  name: string
  /** A check before this one, without which this one would blame the wrong thing. */
  needs?: string
  run(patient: Patient): Promise<Finding>
}

export const ok = (text: string): Finding => ({ state: 'ok', text })
export const warning = (text: string, remedy: string): Finding => ({ state: 'warning', text, remedy })
export const fault = (text: string, remedy: string): Finding => ({ state: 'fault', text, remedy })
export const skipped = (text: string): Finding => ({ state: 'skipped', text })
export const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** A check never takes long. */
export const TIMEOUT_MILLIS = 8000
const MAX_ANSWER_BYTES = 64 * 1024

/** The status and the JSON of an answer, undefined when it is none; a text when there was no answer. */
export async function ask({ upstream }: Patient, url: string): Promise<{ status: number; json: unknown } | string> {
  try {
    const response = await upstream.fetch(url, {
      headersTimeoutMillis: TIMEOUT_MILLIS,
      bodyTimeoutMillis: TIMEOUT_MILLIS,
      maxBytes: MAX_ANSWER_BYTES,
    })
    return { status: response.status, json: parsed(await response.text()) }
  } catch (error) {
    return wordsOf(error)
  }
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Whoever answers for the server, often with a page, answers no JSON.
    return undefined
  }
}
