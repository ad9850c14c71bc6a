import type { Feature } from '../../../http/feature.ts'
import { examinationRoute } from './running-examination.ts'
import { probeRoute } from './probe-route.ts'

export const doctor: Feature = { name: 'doctor', routes: [probeRoute, examinationRoute] }
