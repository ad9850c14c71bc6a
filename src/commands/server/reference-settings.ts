/** What an operator still has to set, so that this server does what the old one did. */
import { secretKeys, translateReferenceEnv } from '../../features/operations/reference-import/reference-import.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { Secret } from '../../base/secret.ts'

export interface RemainingSettings {
  /** Values by key, as TOML writes them. Secrets are named without their value. */
  toSet: Record<string, string>
  /** Variables without a counterpart, with the reason. */
  dropped: Record<string, string>
}

/** `env` is the environment of the old server. */
export function remainingSettings(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): RemainingSettings {
  const { settings, dropped } = translateReferenceEnv(env)
  const toSet = Object.entries(settings).flatMap(([key, value]): [string, string][] => {
    const present = valueAt(config, key)
    if (secretKeys.has(key)) return present === null ? [[key, '(as in the old environment)']] : []
    return JSON.stringify(present) === JSON.stringify(value) ? [] : [[key, JSON.stringify(value)]]
  })
  return { toSet: Object.fromEntries(toSet), dropped }
}

/** Returns the value of a key such as `email.smtp_host`. Does not reveal secrets. */
function valueAt(config: Config, key: string): unknown {
  let value: unknown = config
  for (const part of key.split('.')) {
    const name = part.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
    value = (value as Record<string, unknown> | null)?.[name]
  }
  return value instanceof Secret ? 'set' : value
}
