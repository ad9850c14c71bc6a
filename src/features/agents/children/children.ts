/** The door of children: accounts that other accounts make for agents, and end. */
export { parentOf } from './child-store.ts'
export { familyOf } from './child-family.ts'
