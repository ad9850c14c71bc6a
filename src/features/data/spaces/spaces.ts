/** The door of spaces: what an account has in them, for its export and for the check of all repositories. */
export { spaceFaults } from './space-check.ts'
export { spaceExports } from './space-export.ts'
