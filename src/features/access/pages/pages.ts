/** The door of pages: the browser that asks for one, and who is signed in there. */
export { accountChooser, chosenAccount } from './account-chooser.ts'
export { deleteDevicesBefore, deleteOtherSignIns, deleteSignIn } from './device-store.ts'
export {
  browserHashOf,
  deviceOf,
  entryOf,
  formerBrowser,
  formProof,
  keepBrowser,
  listBrowsers,
  readOwnForm,
  requireFormToken,
  requireNavigation,
  signIn,
  signOut,
  type Device,
  type ListedBrowser,
  type SignedIn,
} from './devices.ts'
export { holderForm, holderPage, holderUpload, holderUrl, signInAgainUrl, type Holder } from './holders.ts'
export { offerEntry } from './passkey-offer.ts'
export { provenForm } from './proven-form.ts'
export { withPassword, type EnterPage } from './sign-in.ts'
