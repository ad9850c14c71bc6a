/** What is sent to account holders, and swept up after them. Their endpoints are in the features that change them. */
import type { Feature } from '../../http/feature.ts'
import { noticeStep } from './account-events.ts'
import { mailStep } from './mail-steps.ts'
import { mailedCodeSweep } from './mailed-code-sweep.ts'

export const accounts: Feature = { name: 'accounts', sweeps: [mailedCodeSweep], steps: [mailStep, noticeStep] }
