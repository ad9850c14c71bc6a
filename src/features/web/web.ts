/**
 * What pages share: how a route shows one, form parts, the browser and who is signed in there. Features with pages of
 * their own build on this door; the account pages in this folder build on the features.
 */
export { accountChooser, chosenAccount } from './account-chooser.ts'
export { deleteDevicesBefore, deleteSignInsOf } from './device-store.ts'
export {
  deviceOf,
  formProof,
  readOwnForm,
  requireFormToken,
  requireNavigation,
  signIn,
  type Confirm,
  type Device,
  type SignedIn,
} from './devices.ts'
export { faultAt, faultOf, type Fault } from './faults.ts'
export {
  errorNote,
  field,
  hidden,
  identifierField,
  pageRefusal,
  passwordField,
  rememberField,
  seeOther,
  type PageCall,
} from './page-parts.ts'
export { withPassword } from './sign-in.ts'
