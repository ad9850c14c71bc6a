/** Tells the devices of an account that a request waits for their wallets. */
import { plainName } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { enqueuePush } from '../../push/notifications/notifications.ts'
import type { NewConsent } from './wallet-consent-store.ts'

/**
 * Whether the devices of an account may be notified of another request: never without a push relay. Strangers can open
 * requests that name the account from many addresses, so each account has a limit.
 */
export const mayNotify = async ({ config, limits }: Context, did: Did): Promise<boolean> =>
  config.notifications.relay !== null &&
  (await limits.chargeShared({ name: 'loginApprovalPush', key: did }))?.allowed !== false

/**
 * Queue a push to each device of an account, in the transaction that stores the consent. Returns the number of devices;
 * 0 without a push relay. `clientName` is what the app calls itself, or its id.
 *
 * The push never contains the match code, because the code proves that the person sees the page. No device shows a text
 * by a stranger alone: the name of the app is data, which the wallet shows with what else it knows about the request.
 */
export const notifyDevices = (
  ctx: Context,
  tx: Tx,
  did: Did,
  consent: NewConsent,
  clientName: string,
): Promise<number> => {
  const { requestId, webOrigin, createdAt, expiresAt } = consent
  const message = {
    type: 'login-approval',
    title: 'Sign-in request',
    body: 'Someone entered your account name to sign in. Approve it only if this was you.',
    data: { requestId, did, clientName: plainName(clientName), origin: webOrigin },
  }
  return enqueuePush(ctx, tx, did, message, { ttlSecs: Math.ceil((expiresAt - createdAt) / 1000) })
}
