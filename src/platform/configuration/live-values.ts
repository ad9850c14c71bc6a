/** Values of the configuration that operators may replace while the server runs. */
import { checks } from './config-checks.ts'
import type { Key } from './config-fields.ts'
import { configKeys } from './config-loading.ts'
import type { Config } from './config.ts'

export const LIVE_COMMAND = 'holdfast config set'

const liveKeys = new Map(
  configKeys.filter(({ field }) => field.replacedBy === LIVE_COMMAND).map((key) => [key.name, key] as const),
)

/** Returns undefined for an unknown key, and for a key that takes a restart. */
export const liveKey = (name: string): Key | undefined => liveKeys.get(name)

export const liveNames: readonly string[] = [...liveKeys.keys()]

/** Returns the configuration with these values, by the names of live keys. */
export function withValues(config: Config, values: ReadonlyMap<string, unknown>): Config {
  let changed: Record<string, unknown> = { ...config }
  for (const [name, value] of values) {
    const { path } = liveKeys.get(name)!
    const [first = '', second] = path
    changed = {
      ...changed,
      [first]: second === undefined ? value : { ...(changed[first] as Record<string, unknown>), [second]: value },
    }
  }
  return changed as unknown as Config
}

/** Why a configuration would be refused at the start, for keys that are live; null if it would not. */
export function liveFault(config: Config): string | null {
  for (const { key, level, find } of checks) {
    const found = level === 'fault' && liveKeys.has(key) ? find(config, config.development ? 'dev' : 'serve') : null
    if (found !== null) return `${key}: ${found}`
  }
  return null
}
