/** The door of mails: the texts that account holders get, the codes in them, and the step that sends them. */
export {
  askedBy,
  chargeMail,
  mailCode,
  mailCodeForAnyone,
  mailsOf,
  presentAccount,
  requestCode,
} from './code-requests.ts'
export { CODE_TTL_SECS, codeRefused, issueCode, redeemAnonymousCode, redeemCode } from './mailed-codes.ts'
export { keepMailLanguage } from './mail-language-store.ts'
export { withinBound } from './mail-bound.ts'
export { addMail, sendMail } from './mail-steps.ts'
export {
  addressOf,
  addressWantedMail,
  archiveReadyMail,
  decisionMail,
  hostRenamedMail,
  invitedMail,
  loadMailTexts,
  noticeMail,
  quotaMail,
  recoveryCodeMail,
  type Notice,
  type Stored,
  type Told,
  type ToldDecision,
} from './mail-bodies.ts'
