/** How operators see the way from this server to the network. */
import { route } from '../../../http/endpoint.ts'
import { notFound } from '../../../http/errors.ts'
import type { Feature } from '../../../http/feature.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { subscribersOf, type Subscriber } from '../../data/firehose/firehose.ts'
import { accountNamed } from '../../identity/accounts/accounts.ts'
import { operator } from '../operators/operators.ts'
import { accountReach } from './account-reach.ts'
import type { Link } from './link.ts'
import { serverReach } from './server-reach.ts'

/** Most subscribers that the report lists. */
const MAX_LISTED = 100

const subscriberView = ({ since, leftAt, ...subscriber }: Subscriber) => ({
  ...subscriber,
  since: wireTime(since),
  leftAt: wireTimeOrNull(leftAt),
})

const linkView = ({ name, state, text, remedy }: Link) => ({ name, state, text, remedy })

export const reach: Feature = {
  name: 'reach',
  routes: [
    /** With `account` (a DID, handle or address), also how the network sees that account. */
    route('GET', '/v1/admin/network', {
      auth: operator('observe'),
      long: true,
      async handler({ ctx, url: { searchParams } }) {
        const name = searchParams.get('account')
        const account = name === null ? null : await accountNamed(ctx.db, name)
        if (name !== null && account === null) throw notFound('No such account')
        const { here, former } = subscribersOf(ctx)
        const [links, accountLinks] = await Promise.all([serverReach(ctx), account && accountReach(ctx, account)])
        return {
          checkedAt: wireTime(ctx.clock.now()),
          links: links.map(linkView),
          subscribers: Array.from(here).slice(0, MAX_LISTED).map(subscriberView),
          formerSubscribers: former.toReversed().map(subscriberView),
          account: account && { did: account.did, handle: account.handle, links: accountLinks!.map(linkView) },
        }
      },
    }),
  ],
}
