/**
 * The door of cases: reports, labels and notices about accounts, records and blobs of this server, and the decisions of
 * moderators.
 */
export { appeal, decisionOfCode } from './case-appeals.ts'
export { decisionActs } from './case-decisions.ts'
export { copyReport, fileReport, takeReport } from './case-intake.ts'
export {
  ownDecisionView,
  readableDecision,
  type ExportedDecision,
  type ListedCase,
  type WholeCase,
} from './case-views.ts'
export { countWaiting } from './case-store.ts'
export { decisionTexts } from './decision-texts.ts'
export { accountSubject, blobSubject, type CaseSubject } from './case-subjects.ts'
export { setTakedown } from './subject-takedowns.ts'
