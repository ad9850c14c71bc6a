/** Starting this program once more: the binary itself, or the runtime with the entry file. */

/** Whether this is the executable, whose files lie in a file system that exists only inside of it. */
export const isCompiled = import.meta.path.startsWith('/$bunfs/') || import.meta.path.includes('~BUN')

/** Command line of `holdfast <words>`. */
export function selfCommand(...words: string[]): string[] {
  return isCompiled ? [process.execPath, ...words] : [process.execPath, Bun.main, ...words]
}
