/** Starting this program once more: the binary itself, or the runtime with the entry file. */
import { basename } from 'node:path'

/** Command line of `holdfast <words>`. */
export function selfCommand(...words: string[]): string[] {
  // In a binary the entry lies in a file system that exists only inside of it.
  const isCompiled = basename(process.execPath).replace(/\.exe$/, '') !== 'bun'
  return isCompiled ? [process.execPath, ...words] : [process.execPath, Bun.main, ...words]
}
