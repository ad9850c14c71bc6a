/** The door of pages: the browser that asks for one, and who is signed in there. */
export { accountChooser, chosenAccount } from './account-chooser.ts'
export { browsersOf, deleteDevicesBefore, deleteOtherSignIns, deleteSignIn, type KnownBrowser } from './device-store.ts'
export {
  browserHashOf,
  deviceOf,
  entryOf,
  formerDeviceToken,
  formProof,
  isBrowserAlive,
  keepBrowser,
  readOwnForm,
  requireFormToken,
  requireNavigation,
  signIn,
  signOut,
  type Device,
  type FormerBrowser,
  type SignedIn,
} from './devices.ts'
export { holderForm, holderOf, holderUpload, signInUrl, type Holder } from './holders.ts'
export { offerEntry } from './passkey-entry.ts'
export { withPassword, type EnterPage } from './sign-in.ts'
