/**
 * What pages share: how a route shows one, form parts, the browser and who is signed in there, and scopes in words.
 */
export { accountChooser, chosenAccount } from './account-chooser.ts'
export { browsersOf, deleteDevicesBefore, deleteOtherSignIns, deleteSignIn, type KnownBrowser } from './device-store.ts'
export {
  browserHashOf,
  deviceOf,
  entryOf,
  formProof,
  readOwnForm,
  requireFormToken,
  requireNavigation,
  signIn,
  signOut,
  type Confirm,
  type Device,
  type SignedIn,
} from './devices.ts'
export { faultAt, faultOf, signedInElsewhere, type Fault } from './faults.ts'
export {
  codeField,
  day,
  errorNote,
  field,
  goodNote,
  hidden,
  identifierField,
  newPasswordField,
  pageRefusal,
  passwordField,
  rememberField,
  seeOther,
  type PageCall,
} from './page-parts.ts'
export { withPassword } from './sign-in.ts'
export { permissionList, scopeLine, type PermissionLine } from './scope-view.ts'
export { holderForm, holderOf, signInUrl, type Holder } from './holders.ts'
export { collectionWords, listed, sentence, wordsOf } from './scope-words.ts'
