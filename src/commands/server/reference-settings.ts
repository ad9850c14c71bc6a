/** What an operator still has to set, so that this server does what the old one did. */
import {
  secretKeys,
  translateReferenceEnv,
  type Setting,
} from '../../features/operations/reference-import/reference-import.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { Secret } from '../../base/secret.ts'

export interface RemainingSettings {
  /** Values by key, without secrets. */
  toSet: Record<string, Setting>
  /** The keys of secrets that keep the values of the old environment. */
  secrets: readonly string[]
  /** Variables without a counterpart, with the reason. */
  dropped: Record<string, string>
}

/** `env` is the environment of the old server. */
export function remainingSettings(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): RemainingSettings {
  const { settings, dropped } = translateReferenceEnv(env)
  const differs = ([key, value]: [string, Setting]) => JSON.stringify(valueAt(config, key)) !== JSON.stringify(value)
  const keys = Object.keys(settings)
  return {
    toSet: Object.fromEntries(
      Object.entries(settings)
        .filter(([key]) => !secretKeys.has(key))
        .filter(differs),
    ),
    secrets: keys.filter((key) => secretKeys.has(key) && valueAt(config, key) === null),
    dropped,
  }
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
