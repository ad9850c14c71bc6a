/**
 * The door of provisioning: accounts in the making, up to the moment at which `ceremony` makes them accounts.
 *
 * In a ceremony a wallet makes an identity whose highest key it holds. A ceremony is a row that survives every
 * interruption. It goes through these states:
 *
 * 1. `created`: a wallet, or an operator for somebody, has claimed handle and address with an invite;
 * 2. `key_issued`: the wallet has asked for the key that will sign the repository, which its identity must name;
 * 3. `did_stored`: the wallet has sent its identity; the directory may have it, or soon;
 * 4. `registered`: the directory has it (a did:web goes from 3 to the end);
 * 5. the account exists, and the row is gone, in one transaction.
 *
 * Whoever repeats a step goes on. Whoever comes back with the same code, names and device gets a new session. A ceremony
 * ends by itself when nobody has come back for a week, and after a month if the directory has its identity.
 */
export { clearCeremonyDid, deleteCeremony, findCeremony, findCeremonyBySession, setCeremonyDid, type Ceremony } from './ceremony-store.ts'
export { noteRegistered } from './registration.ts'
