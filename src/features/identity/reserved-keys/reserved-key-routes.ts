import { anyone, procedure } from '../../../http/endpoint.ts'
import { charge } from '../../../http/limiting.ts'
import { underMasterKey } from '../../../http/master-key-guard.ts'
import { curveFor, reserveKey } from './key-reservation.ts'
import { findReservedKey } from './reserved-key-store.ts'

export const reservedKeyRoutes = [
  procedure('com.atproto.server.reserveSigningKey', {
    auth: underMasterKey(anyone),
    async handler(call) {
      const { ctx, input } = call
      const did = input.did ?? null
      const kept = did && (await findReservedKey(ctx.db, did))
      if (kept) return { signingKey: kept.signingKey }
      // A DID that has a reserved key is not charged. A new key is stored, so making one is limited.
      await charge(call, 'reserveSigningKey')
      const curve = did === null ? 'p256' : await curveFor(ctx, did, { live: true })
      const { signingKey } = await reserveKey(ctx, did, curve)
      return { signingKey }
    },
  }),
]
