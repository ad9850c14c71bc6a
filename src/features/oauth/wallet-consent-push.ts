/** Tells the devices of an account that a request waits for their wallets. */
import type { Context } from '../../platform/context.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { NewConsent } from './wallet-consent-store.ts'

/**
 * Notify the devices of an account. Returns how many were notified: none as long as this server has no push relay. A
 * failure counts as none and is not thrown, because the page still offers its code. The match code is never part of a
 * notification, because it proves that the person sees the page.
 */
export const notifyDevices = async (_ctx: Context, _did: Did, _consent: NewConsent): Promise<number> => 0
