import type { Feature } from '../../../http/feature.ts'
import { signupPlaceSweep } from './signup-place-sweep.ts'
import { signupRoutes } from './signup-routes.ts'

export const signup: Feature = {
  name: 'signup',
  capabilities: ['optionalPassword'],
  routes: signupRoutes,
  sweeps: [signupPlaceSweep],
}
