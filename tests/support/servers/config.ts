/** A configuration for tests: that of development mode, with changes. */
import type { Config } from '../../../src/platform/configuration/config.ts'
import { loadConfig } from '../../../src/platform/configuration/config-loading.ts'
import { Secret } from '../../../src/base/secret.ts'

/** What `admin_token` is in tests. */
export const ADMIN_TOKEN = 'test-admin-token-of-more-than-32-characters'

/** A configured master key, for what exists under one only. */
export const MASTER_KEY = new Secret(new Uint8Array(32).fill(7))

type Value = readonly unknown[] | string | number | boolean | null

/** Any part of the configuration. */
export type ConfigOverrides = { [K in keyof Config]?: Config[K] extends Value ? Config[K] : Partial<Config[K]> }

export interface Place {
  dataDir: string
  port: number
  publicUrl: string
}

/** Nothing listens there, so that a test which forgets its fake upstream fails at once and stays on this machine. */
const NOWHERE = 'http://127.0.0.1:1'

export function testConfig({ dataDir, port, publicUrl }: Place, overrides: ConfigOverrides = {}): Config {
  const env = {
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PORT: String(port),
    SERVICE_PUBLIC_URL: publicUrl,
    SERVICE_APPVIEW_URL: NOWHERE,
    SERVICE_CHAT_URL: NOWHERE,
    SERVICE_MODERATION_REPORT_URL: NOWHERE,
  }
  const loaded = loadConfig({ env, readFile: () => null }, 'dev')
  if (!loaded.ok) throw new Error('development mode needs no configuration')
  return merged(loaded.config, overrides) as Config
}

function merged(base: unknown, changes: unknown): unknown {
  if (!isPlain(base) || !isPlain(changes)) return changes === undefined ? base : changes
  return Object.fromEntries(Object.keys({ ...base, ...changes }).map((key) => [key, merged(base[key], changes[key])]))
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
