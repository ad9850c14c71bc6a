import type { Feature } from '../../http/feature.ts'
import { handleStep } from './handle-steps.ts'
import { pushRegistrationRoutes } from './push-registration-routes.ts'
import { pushStep } from './push-steps.ts'

export const notifications: Feature = { name: 'notifications', routes: pushRegistrationRoutes, steps: [handleStep, pushStep] }
