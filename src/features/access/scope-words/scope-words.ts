/** The door of scope words: what apps and agents may do, in words that account holders understand. */
export { collectionWords } from './collection-phrases.ts'
export { sentence, wordsInEnglish, wordsOf } from './scope-phrases.ts'
export type { SpaceNames } from './space-phrases.ts'
export { permissionList, scopeLine, type PermissionLine } from './scope-view.ts'
