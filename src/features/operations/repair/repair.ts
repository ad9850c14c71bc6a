/**
 * The door of repairs: what can be rebuilt of a damaged repository, from what, and doing it in one commit that relays
 * accept. Never begins by itself. The previous rows are kept in a file, from which the repair can be undone.
 */
export { planRepair, type RepairPlan } from './repair-plan.ts'
export { applyRepair, type Repaired } from './repair-applying.ts'
export { planSpaceRepair, type SpaceRepairPlan } from './space-repair-plan.ts'
export { applySpaceRepair, type RepairedSpaces } from './space-repair-applying.ts'
export { undoRepair } from './repair-undoing.ts'
export { backupSources } from './backup-sources.ts'
