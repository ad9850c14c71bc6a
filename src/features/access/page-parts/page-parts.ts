/** The door of page parts: fields, notes and faults of forms, for all pages. */
export { fieldTexts } from './field-texts.ts'
export { faultTexts } from './fault-texts.ts'
export { faultAt, faultOf, signedInElsewhere, type Fault } from './faults.ts'
export { PASSKEY, passkeyAnswer, passkeyPart, passkeyScript } from './passkey-part.ts'
export { qrCode } from './qr-code.ts'
export {
  accountName,
  codeField,
  day,
  errorNote,
  field,
  fileField,
  goodNote,
  hidden,
  identifierField,
  newPasswordField,
  pageRefusal,
  PENDING_ID,
  passwordField,
  readForm,
  rememberField,
  seeOther,
  type PageCall,
} from './form-parts.ts'
export { sentOnce } from './sent-once.ts'
