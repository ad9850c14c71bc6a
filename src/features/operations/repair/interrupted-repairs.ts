import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { FOLDER_PREFIX } from './backup-sources.ts'
import { PART, REPAIRS } from './evidence.ts'

/**
 * Delete what killed repairs have left: databases of backups, which are as readable as the server's own even if the
 * backup is encrypted, and incomplete files. The caller has locked the data directory.
 */
export function clearInterrupted(dataDir: string): void {
  clear(dataDir, (name) => name.startsWith(FOLDER_PREFIX))
  clear(join(dataDir, REPAIRS), (name) => name.endsWith(PART) || name.endsWith(`${PART}-journal`))
}

function clear(folder: string, isLeft: (name: string) => boolean): void {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder).filter(isLeft)) rmSync(join(folder, name), { recursive: true, force: true })
}
