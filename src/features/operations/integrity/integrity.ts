/**
 * The door of the running check: every repository is read in turn while the server works, and what is wrong is told.
 * Nothing is mended by itself.
 */
export { damagedRepos } from './integrity-store.ts'
export { refreshFindings } from './integrity-sweep.ts'
export { faultsByPart } from './repo-check.ts'
