/** How this program starts itself again: as the executable, or as the runtime with the entry file. */

/** Whether this is the compiled executable, whose files are in a virtual file system inside it. */
export const isCompiled = import.meta.path.startsWith('/$bunfs/') || import.meta.path.includes('~BUN')

/** Returns the command line of `holdfast <words>`. */
export function selfCommand(...words: string[]): [string, ...string[]] {
  return isCompiled ? [process.execPath, ...words] : [process.execPath, Bun.main, ...words]
}
