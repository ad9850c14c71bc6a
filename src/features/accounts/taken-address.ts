/**
 * What a stranger learns of an address that has an account: that it cannot be used, in the words for any other address
 * that cannot. Everything else about a sign-up is checked first, so asking whether an address is free costs an account
 * where it is. Who has an account, and wants the address for it, is told that it is taken. Either way an address of the
 * network is refused a few times; then it has to wait whatever it asks for. Whoever has the address gets a mail.
 */
import type { Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import { refuseSpent } from '../../http/limiting.ts'
import { KeyedQueue } from '../../base/keyed-queue.ts'
import { perContext, type Context } from '../../platform/context.ts'
import { accountWithEmail } from './account-store.ts'
import { emailNotSupported } from './lasting-address.ts'
import { addMail } from './mail-steps.ts'
import { addressWantedMail } from './mails.ts'

/** Strangers are told no more than that the address is refused. */
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
 * Let `ask` refuse an address that has an account, within the limit. A client asks one question after another: of many at
 * once it would learn the answers before the first is counted.
 */
export function withinRefusedAddresses<T>(exchange: Exchange, ask: () => Promise<T>): Promise<T> {
  const { ctx, client } = exchange
  return asking(ctx).run(client, async () => {
    refuseSpent(exchange, 'takenAddress')
    try {
      return await ask()
    } catch (error) {
      if (error instanceof AddressTaken) {
        // Not waited for: that there is somebody to be told takes no time.
        ctx.background.run('mail about an address that is taken', () => tellHolder(ctx, error.email))
        // Without a word of it in the headers.
        ctx.limits.charge({ name: 'takenAddress', key: client })
      }
      throw error
    }
  })
}

async function tellHolder(ctx: Context, email: string): Promise<void> {
  const account = await accountWithEmail(ctx.db, email)
  const state = account && ctx.limits.charge({ name: 'requestMail', key: `address_wanted ${account.did}` })
  if (!account || state?.allowed === false) return
  const { did } = account
  await ctx.db.transaction((tx) => addMail(ctx, tx, { key: `address_wanted ${did}`, did, mail: addressWantedMail(ctx, { ...account, email }) }))
}
