import type { Feature } from '../../http/feature.ts'
import { senderKeyRoutes } from './sender-key-routes.ts'

export const senderKeys: Feature = { name: 'sender-keys', routes: senderKeyRoutes }
