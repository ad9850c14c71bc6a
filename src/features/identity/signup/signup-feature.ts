import type { Feature } from '../../../http/feature.ts'
import { signupRoutes } from './signup-routes.ts'

export const signup: Feature = { name: 'signup', capabilities: ['optionalPassword'], routes: signupRoutes }
