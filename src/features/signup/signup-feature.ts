import type { Feature } from '../../http/feature.ts'
import { abandonedSignupSweep } from './signup.ts'
import { signupRoutes } from './signup-routes.ts'

export const signup: Feature = {
  name: 'signup',
  capabilities: ['optionalPassword'],
  routes: signupRoutes,
  sweeps: [abandonedSignupSweep],
}
