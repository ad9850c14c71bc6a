/** The configuration in force: each value, where it comes from, and how it is changed. */
import { Secret } from '../../../base/secret.ts'
import { route } from '../../../http/endpoint.ts'
import { configKeys } from '../../../platform/configuration/config-loading.ts'
import { MAX_SHOWN_ITEMS, shownValue, toToml } from '../../../platform/configuration/shown-values.ts'
import type { Context } from '../../../platform/context.ts'
import { findDefaultQuota } from '../../identity/quotas/quotas.ts'
import { operator } from '../operators/operators.ts'

/** What operators have set while the server runs, by the names of the keys. Null: nothing. */
async function replacedValues({ db }: Context): Promise<Readonly<Record<string, unknown>>> {
  const { records, blobBytes } = await findDefaultQuota(db)
  return { 'repos.max_records_per_account': records, 'blobs.max_storage_per_account': blobBytes }
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
]

function textOf(value: unknown): string {
  if (!Array.isArray(value) || value.length <= MAX_SHOWN_ITEMS) return toToml(value)
  return `${toToml(value.slice(0, MAX_SHOWN_ITEMS)).slice(0, -1)}, …] (${value.length} entries)`
}
