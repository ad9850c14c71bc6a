/** Sign-ins with a passkey alone, on any page that asks for a password. */
import { offerPasskey, type PasskeyUse } from '../factors/factors.ts'
import type { PageCall } from '../page-parts/page-parts.ts'
import { browserHashOf } from './devices.ts'

/** The use of a passkey that opens an account in this browser without its password. */
export const entryUse = (call: PageCall): PasskeyUse => ({ purpose: 'enter', did: null, binding: browserHashOf(call) })

/** Returns what a browser needs to sign in with a passkey; null if no account here has one. */
export const offerEntry = (call: PageCall): Promise<object | null> => offerPasskey(call.ctx, null, () => entryUse(call))
