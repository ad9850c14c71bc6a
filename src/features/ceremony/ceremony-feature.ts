import type { Feature } from '../../http/feature.ts'
import { ceremonyRoutes } from './ceremony-routes.ts'

export const ceremony: Feature = { name: 'ceremony', capabilities: ['createCeremony'], routes: ceremonyRoutes }
