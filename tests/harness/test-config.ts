import { type Config, loadConfig } from '../../src/platform/config.ts'
import { Secret } from '../../src/platform/secret.ts'

export type ConfigOverrides = { readonly [Name in keyof Config]?: Overridden<Config[Name]> }

type Overridden<T> = T extends readonly unknown[] | Secret<unknown> | string | number | boolean | null ? T : { readonly [Name in keyof T]?: Overridden<T[Name]> }

/** Nothing listens there, so that a test which forgets its fake upstream fails at once and stays on this machine. */
const NOWHERE = 'http://127.0.0.1:1'

/** The configuration of `holdfast dev` on any free port, with what a test wants changed. Derived keys follow `dataDir` and `publicUrl`. */
export function testConfig(overrides: ConfigOverrides & { dataDir: string }): Config {
  const env = {
    SERVICE_PORT: '0',
    SERVICE_DATA_DIR: overrides.dataDir,
    SERVICE_PUBLIC_URL: overrides.publicUrl ?? 'http://localhost:2583',
    SERVICE_APPVIEW_URL: NOWHERE,
    SERVICE_CHAT_URL: NOWHERE,
    SERVICE_MODERATION_REPORT_URL: NOWHERE,
    SERVICE_LOG_LEVEL: 'error',
  }
  const loaded = loadConfig({ env, readFile: () => null }, 'dev')
  if (!loaded.ok) throw new Error(loaded.problems.map(({ subject, fault }) => `${subject}: ${fault}`).join('; '))
  return merge(loaded.config, overrides) as Config
}

function merge(base: object, changes: object): object {
  const merged = Object.entries(changes)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      const under = (base as Record<string, unknown>)[name]
      return [name, isPlain(value) && isPlain(under) ? merge(under, value) : value]
    })
  return { ...base, ...Object.fromEntries(merged) }
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
