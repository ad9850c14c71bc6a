/** The migrations: all files of the folder `migrations/`. The executable contains what they are here (`build.ts`). */
import { join } from 'node:path'
import { readMigrations } from './migration-files.ts'
import type { Migration } from './migrations.ts'

export const migrations: readonly Migration[] = readMigrations(join(import.meta.dir, '../../../migrations'))
