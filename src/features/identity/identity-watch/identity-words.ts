/** Words for operators and holders about identities. */
import type { Misfit } from './watched-identity-store.ts'

export const misfitWords: Readonly<Record<Misfit, string>> = {
  ended: 'the identity has ended',
  server: 'the identity names another server',
  'signing-key': 'the identity names another signing key, so others refuse what the account posts',
  handle: 'the identity names another handle',
}
