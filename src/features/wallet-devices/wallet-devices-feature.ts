import type { Feature } from '../../http/feature.ts'
import { walletDeviceRoutes } from './wallet-device-routes.ts'

export const walletDevices: Feature = { name: 'wallet-devices', routes: walletDeviceRoutes }
