/** The door of account archives: everything that this server stores of an account, in one file. */
export { archiveOfAccount } from './archive-stream.ts'
export { importArchive, type Restored } from './archive-import.ts'
export { keptArchive, keptArchives, scheduleArchives, type KeptArchives } from './kept-archives.ts'
