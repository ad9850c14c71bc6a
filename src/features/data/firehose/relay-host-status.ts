/** What a relay says about this server (com.atproto.sync.getHostStatus). */
import { membersOf } from '../../../base/members.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { askJson } from '../../../platform/network/json-answer.ts'
import type { Outbound } from '../../../platform/network/outbound.ts'

export type RelayAnswer =
  | {
      kind: 'known'
      /** `active`, `idle`, `offline`, `throttled` or `banned`; null if it does not say. */
      status: string | null
      /** Number of the last event that it has taken. */
      seq: number | null
      accountCount: number | null
    }
  /** It has never read this server. */
  | { kind: 'not-crawled' }
  | { kind: 'failed'; httpStatus: number }
  | { kind: 'unreachable'; detail: string }

/** Ask the relay at a base URL. Never throws. */
export async function askRelay(
  { config, upstream }: { config: Pick<Config, 'publicUrl'>; upstream: Outbound },
  relay: string,
): Promise<RelayAnswer> {
  const hostname = encodeURIComponent(new URL(config.publicUrl).host)
  const answer = await askJson(upstream, `${relay}/xrpc/com.atproto.sync.getHostStatus?hostname=${hostname}`)
  if (!answer.ok) return { kind: 'unreachable', detail: answer.detail }
  const { error, status, seq, accountCount } = membersOf(answer.json)
  if (error === 'HostNotFound') return { kind: 'not-crawled' }
  if (answer.status !== 200) return { kind: 'failed', httpStatus: answer.status }
  return {
    kind: 'known',
    status: typeof status === 'string' ? status : null,
    seq: integerOrNull(seq),
    accountCount: integerOrNull(accountCount),
  }
}

const integerOrNull = (value: unknown) => (typeof value === 'number' && Number.isSafeInteger(value) ? value : null)
