/** The door of sessions: those opened with a password, with an app password, and by wallets. */
export { createAppPassword, revokeAppPassword } from './app-passwords.ts'
export { listAppPasswords, type AppPassword } from './app-password-store.ts'
export { openSession, sessionTokens } from './session-life.ts'
export { deleteSession, findSession, listSessions, type ListedSession } from './session-store.ts'
export { openWalletSession } from './wallet-credential.ts'
export { deleteWalletSession, listWalletSessions, type ListedWalletSession } from './wallet-session-store.ts'
