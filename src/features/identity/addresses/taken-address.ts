/**
 * Keeps strangers from learning which email addresses have accounts. A sign-up is told only that the address cannot be
 * used, in the same words as for an unwanted address. Everything else about the sign-up is checked first, so that an
 * attacker can find out that an address is free only by creating an account. An account holder who changes their
 * address is told that the new one is taken. Either way, a client address gets a few such refusals, then has to wait.
 * The holder of the email address gets a mail.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { budgetsOf } from '../../../http/client-address.ts'
import { chargesOf, refuseSpent } from '../../../http/limiting.ts'
import { KeyedQueue } from '../../../base/keyed-queue.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { accountWithEmail } from '../accounts/accounts.ts'
import { emailNotSupported } from './lasting-address.ts'
import { addMail, addressWantedMail } from '../mails/mails.ts'

/** The default message, for strangers, says only that the address is refused. */
export class AddressTaken extends Refusal {
  constructor(
    readonly email: string,
    { status, name, message } = emailNotSupported(),
  ) {
    super(status, name, message)
  }
}

const asking = perContext(() => new KeyedQueue())

/**
 * Run `ask`, which may throw `AddressTaken`, within the limit on such refusals. Calls that share a budget run one after
 * another: with concurrent calls, a client would get many answers before the first is counted. Throws
 * `RateLimitExceeded`.
 */
export function withinRefusedAddresses<T>(exchange: Exchange, ask: () => Promise<T>): Promise<T> {
  const { ctx, client } = exchange
  return asking(ctx).run(budgetsOf(client).at(-1)!.key, async () => {
    await refuseSpent(exchange, 'takenAddress')
    try {
      return await ask()
    } catch (error) {
      if (error instanceof AddressTaken) {
        // In the background, because the response time must not reveal that the address has a holder.
        ctx.background.run('mail about an address that is taken', () => tellHolder(ctx, error.email))
        // Charged without rate-limit headers, which would reveal the refusal's reason too.
        await ctx.limits.chargeShared(...chargesOf(client, 'takenAddress'))
      }
      throw error
    }
  })
}

async function tellHolder(ctx: Context, email: string): Promise<void> {
  const account = await accountWithEmail(ctx.db, email)
  const state =
    account && (await ctx.limits.chargeShared({ name: 'requestMail', key: `address_wanted ${account.did}` }))
  if (!account || state?.allowed === false) return
  const { did } = account
  const mail = await addressWantedMail(ctx, { ...account, email })
  const order = { key: `address_wanted ${did}`, did, what: 'address_wanted', causedBy: 'anyone', mail } as const
  await ctx.db.transaction(async (tx) => {
    // The account may have been deleted, or have another address by now.
    if ((await accountWithEmail(tx, email))?.did === did) await addMail(ctx, tx, order)
  })
}
