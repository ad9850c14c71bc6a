/** What is swept up after accounts. Their endpoints are in the features that change them. */
import type { Feature } from '../../http/feature.ts'
import { mailedCodeSweep } from './mailed-code-sweep.ts'

export const accounts: Feature = { name: 'accounts', sweeps: [mailedCodeSweep] }
