/** The type of a loaded configuration, which `config-loading.ts` builds from a file and variables. */
import type { ConfigOf } from './config-fields.ts'
import type { declared } from './config-sections.ts'

export type Config = ConfigOf<typeof declared>

/** `dev` needs no configuration; `serve` requires every key that has no safe default. */
export type Mode = 'serve' | 'dev'
