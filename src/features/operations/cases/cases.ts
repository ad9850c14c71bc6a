/**
 * The door of cases: what people, labelers and other services say about accounts, records and blobs of this server, and
 * what moderators decide about it.
 */
export { appeal, decisionOfCode } from './case-appeals.ts'
export { copyReport, fileReport, takeReport } from './case-intake.ts'
export { ownDecisionView } from './case-views.ts'
export { countWaiting } from './case-store.ts'
export { accountSubject, blobSubject, type CaseSubject } from './case-subjects.ts'
export { setTakedown } from './subject-takedowns.ts'
