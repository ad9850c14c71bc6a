/** The door of passwords: how they are hashed and replaced, and the attempts to sign in with them. */
export { attemptLogin, loginRefused, loginWithPassword, noteFailedSignIn, provePassword } from './logins.ts'
export {
  expectsForeignHashes,
  hashGeneratedElsewhere,
  hashGeneratedPassword,
  hashPassword,
  MAX_TRIED_PASSWORD_CHARS,
  MIN_PASSWORD_CHARS,
  passwordFault,
} from './password-hashing.ts'
export { givePassword, replacePassword } from './password-replacement.ts'
