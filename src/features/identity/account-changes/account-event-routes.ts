/** The endpoint that lists the events of an account, for programs of its holder. */
import { route } from '../../../http/endpoint.ts'
import { leavingOwner } from '../../access/auth/auth.ts'
import { eventPage } from '../account-events/account-events.ts'

export const accountEventRoutes = [
  route('GET', '/v1/account/events', {
    auth: leavingOwner,
    handler: ({ ctx, caller, url }) => eventPage(ctx, caller.did, url.searchParams),
  }),
]
