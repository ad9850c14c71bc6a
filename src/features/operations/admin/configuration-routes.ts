/** The configuration in force: each value, where it comes from, and how it is changed. */
import { Type } from '@sinclair/typebox'
import { Secret } from '../../../base/secret.ts'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import type { Key } from '../../../platform/configuration/config-fields.ts'
import { configKeys } from '../../../platform/configuration/config-loading.ts'
import { liveFault, liveKey, liveNames, withValues } from '../../../platform/configuration/live-values.ts'
import { MAX_SHOWN_ITEMS, shownValue, toToml } from '../../../platform/configuration/shown-values.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { setLiveValue, SETTINGS_CHANNEL } from '../../../platform/running/live-config.ts'
import { findDefaultQuota } from '../../identity/quotas/quotas.ts'
import { actorOf, operator, recordAudit } from '../operators/operators.ts'
import { hasHandleUnder } from './account-report-store.ts'

const MAX_VALUE_CHARS = 10_000

/** Returns the values that operators have set while the server runs, by the names of the keys; null if none is set. */
async function replacedValues({ db, live, config }: Context): Promise<Readonly<Record<string, unknown>>> {
  const { records, blobBytes } = await findDefaultQuota(db)
  return {
    ...Object.fromEntries([...live.replaced.keys()].map((name) => [name, shownValue(liveKey(name)!, config)])),
    'repos.max_records_per_account': records,
    'blobs.max_storage_per_account': blobBytes,
  }
}

/** Parse the text like the environment variable of the key. Throws `InvalidRequest`. */
function valueIn(key: Key, text: string): unknown {
  const parsed = key.field.kind.fromText(text)
  if (!parsed.ok) throw invalidRequest(parsed.faults.map(({ at, fault }) => `${key.name}${at}: ${fault}`).join('; '))
  return parsed.value
}

/** Throws `InvalidRequest` for the removal of a domain under which accounts have handles. */
async function requireNoneLost(reader: Reader, before: readonly string[], after: readonly string[]): Promise<void> {
  const kept = new Set(after)
  for (const domain of before.filter((each) => !kept.has(each)))
    if (await hasHandleUnder(reader, domain))
      throw invalidRequest(`available_user_domains: accounts have, or are about to get, handles under ${domain}`)
}

export const configurationRoutes = [
  route('GET', '/v1/admin/configuration', {
    auth: operator(),
    async handler({ ctx }) {
      const replaced = await replacedValues(ctx)
      return {
        keys: configKeys.map((key) => {
          const { name, field } = key
          const set = replaced[name] ?? null
          const value = set ?? shownValue(key, ctx.config)
          const origin = ctx.origins?.get(name)
          return {
            name,
            /** In TOML, shortened if it is a long list; null without one. */
            value: value === null ? null : textOf(value),
            isSecret: value instanceof Secret,
            from: set !== null ? 'run time' : (origin?.from ?? 'unknown'),
            variable: set === null && origin && 'variable' in origin ? origin.variable : null,
            replacedBy: field.replacedBy ?? null,
            meaning: field.doc,
          }
        }),
      }
    },
  }),

  /** Replace a value while the server runs, on every node. With null, the configured value applies again. */
  route('POST', '/v1/admin/configuration', {
    auth: operator(),
    async handler(call) {
      const { ctx, caller, body } = call
      const { name, value } = await readJson(
        body,
        Type.Object({
          name: Type.String(),
          value: Type.Union([Type.String({ maxLength: MAX_VALUE_CHARS }), Type.Null()]),
        }),
      )
      const key = liveKey(name)
      if (key === undefined)
        throw invalidRequest(`name must be one of ${liveNames.join(', ')}; all other keys require a restart`)
      const { loaded } = ctx.live
      const wanted = value === null ? shownValue(key, loaded) : valueIn(key, value)
      await ctx.db.transaction(async (tx) => {
        // Another node may have replaced a value that this node has not read yet.
        const { current } = await ctx.live.read(tx)
        const config = withValues(current, new Map([[name, wanted]]))
        const fault = liveFault(config)
        if (fault !== null) throw invalidRequest(fault)
        await requireNoneLost(tx, current.availableUserDomains, config.availableUserDomains)
        await setLiveValue(tx, name, value)
        await recordAudit(call, tx, {
          actor: actorOf(caller),
          action: 'configuration_changed',
          subject: name,
          detail: JSON.stringify({ before: shownValue(key, current), after: wanted }),
        })
        ctx.db.cluster?.notify(tx, SETTINGS_CHANNEL)
      })
      await ctx.live.reload(ctx.db)
      return { name, value: wanted === null ? null : textOf(wanted) }
    },
  }),
]

function textOf(value: unknown): string {
  if (!Array.isArray(value) || value.length <= MAX_SHOWN_ITEMS) return toToml(value)
  return `${toToml(value.slice(0, MAX_SHOWN_ITEMS)).slice(0, -1)}, …] (${value.length} entries)`
}
