import type { Feature } from '../../../http/feature.ts'
import { probeRoute } from './probe-route.ts'

export const doctor: Feature = { name: 'doctor', routes: [probeRoute] }
