/**
 * The door of repairs: finding out what can be rebuilt of a damaged repository, and from what, and rebuilding it in one
 * commit that relays accept. A repair never begins by itself. It keeps the previous rows in a file, with which it can
 * be undone.
 */
export { planRepair, type RepairPlan } from './repair-plan.ts'
export { applyRepair, refuseUndecided, type Repaired } from './repair-applying.ts'
export { planSpaceRepair, type SpaceRepairPlan } from './space-repair-plan.ts'
export { applySpaceRepair, type RepairedSpaces } from './space-repair-applying.ts'
export { undoRepair } from './repair-undoing.ts'
export { backupSources } from './backup-sources.ts'
export { clearInterrupted } from './interrupted-repairs.ts'
