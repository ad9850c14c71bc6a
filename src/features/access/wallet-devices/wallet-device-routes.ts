/** What a device may ask with its token: the address of its server. */
import { route } from '../../../http/endpoint.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import { advertisedNodeId } from '../../push/iroh/iroh.ts'
import { device } from './device-credential.ts'

export const walletDeviceRoutes = [
  route('GET', '/v1/devices/:id/pds', {
    auth: device,
    handler({ ctx, caller, path }) {
      if (caller.device.id !== path.id) throw authenticationRequired('The token belongs to another device')
      const { publicUrl } = ctx.config
      return {
        pdsUrl: publicUrl,
        websocketUrl: publicUrl.replace(/^http/, 'ws'),
        irohEndpoint: advertisedNodeId(ctx) ?? undefined,
      }
    },
  }),
]
