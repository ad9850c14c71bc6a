/** The door of sessions: those opened with a password, with an app password, and by wallets. */
export { createAppPassword, createScopedAppPassword, endAppPassword, revokeAppPassword } from './app-passwords.ts'
export { keepFormerIssuer } from './former-issuers.ts'
export { insertAppPassword, listAppPasswords, type AppPassword, type NewAppPassword } from './app-password-store.ts'
export { isTokenId, keepSession, openSession, sessionTokens, type FormerSession } from './session-life.ts'
export { REFRESH_TTL_SECS } from './session-tokens.ts'
export { deleteSession, findSession, listSessions, type ListedSession } from './session-store.ts'
export { openWalletSession } from './wallet-credential.ts'
export { deleteWalletSession, listWalletSessions, type ListedWalletSession } from './wallet-session-store.ts'
