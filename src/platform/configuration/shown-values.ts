/** Configuration values as operators see them: without secrets, and with long lists cut off. */
import { Secret } from '../../base/secret.ts'
import { withoutPassword } from '../database/database-url.ts'
import type { Config } from './config.ts'
import type { Key } from './config-fields.ts'

/** Longer lists are cut off, because they would hide the other keys. */
export const MAX_SHOWN_ITEMS = 100

const withoutPath = (url: string): string => `${new URL(url).origin}/…`

/** Values that contain a secret: anyone who knows the URL of a webhook can post to it. */
const reduced: Readonly<Record<string, (value: string) => string>> = {
  database_url: withoutPassword,
  'alerts.webhook_url': withoutPath,
  'blob_hook.url': withoutPath,
}

/** Returns the value of a key, with each `Secret` as it is. */
export function shownValue({ name, path }: Key, config: Config): unknown {
  const kept = path.reduce<unknown>((under, step) => (under as Record<string, unknown>)[step], config)
  const reduce = reduced[name]
  return typeof kept === 'string' && reduce !== undefined ? reduce(kept) : kept
}

/** The value in TOML; secrets are `***`. */
export function toToml(value: unknown): string {
  if (value instanceof Secret) return '"***"'
  if (Array.isArray(value)) return `[${value.map(toToml).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([name, member]) => `${name} = ${toToml(member)}`)
    .join(', ')} }`
}
