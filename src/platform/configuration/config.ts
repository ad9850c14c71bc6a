/** What a configuration is once it is loaded: the value that `config-loading.ts` makes of a file and variables. */
import type { ConfigOf } from './config-fields.ts'
import type { declared } from './config-sections.ts'

export type Config = ConfigOf<typeof declared>

/** `dev` needs no configuration; `serve` requires what has no safe default. */
export type Mode = 'serve' | 'dev'
