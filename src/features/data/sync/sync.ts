/** The door of sync: whole repositories that come from elsewhere. */
export { ImportedRepo, type BlockSource, type ImportedRecord } from './imported-repo.ts'
export { importFetchedRepo, importRepo } from './repo-import.ts'
