/**
 * The door of the running check. It reads every repository in turn while the server runs, and reports what is wrong. It
 * repairs nothing.
 */
export { damagedRepos } from './integrity-store.ts'
export { refreshFindings } from './integrity-sweep.ts'
export { faultsByPart } from './repo-check.ts'
