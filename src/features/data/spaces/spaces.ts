/** The door of spaces: what an account has in them, for its export. */
export { spaceExports, type SpaceExport } from './space-export.ts'
