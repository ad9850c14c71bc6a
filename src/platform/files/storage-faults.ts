/**
 * What keeps this machine from storing or opening something, by error code of the system or of SQLite. Clients and
 * health checks see these words, so they contain no paths and no names.
 */
const storageFaults = [
  [/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)/, 'the disk is full'],
  [/^(SQLITE_READONLY|EROFS)/, 'the file system is read-only'],
  [/^(EMFILE|ENFILE)/, 'too many files are open'],
  [/^(SQLITE_NOMEM|ENOMEM)/, 'the memory is full'],
  [/^(SQLITE_IOERR_(READ|SHORT_READ|CORRUPTFS)|EIO)/, 'the disk reports errors'],
  // Also when a quota is used up, for which SQLite has no code of its own.
  [/^SQLITE_(IOERR|CANTOPEN|BUSY|LOCKED|PROTOCOL)/, 'the database cannot be written'],
] as const

export type StorageFault = (typeof storageFaults)[number][1]

/** How deep the causes of an error are searched. */
const MAX_CAUSES = 4

/** Returns null if the error is of another kind. */
export function storageFaultOf(error: unknown): StorageFault | null {
  let cause = error
  for (let depth = 0; depth <= MAX_CAUSES && typeof cause === 'object' && cause !== null; depth++) {
    const { code } = cause as { code?: unknown }
    const found = typeof code === 'string' ? storageFaults.find(([pattern]) => pattern.test(code)) : undefined
    if (found !== undefined) return found[1]
    cause = (cause as { cause?: unknown }).cause
  }
  return null
}
