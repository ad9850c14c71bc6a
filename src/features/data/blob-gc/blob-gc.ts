/** The garbage collector of blobs: a feature of its own because it needs repositories, which in turn need blobs. */
import type { Feature } from '../../../http/feature.ts'
import { gcSweep } from './gc-sweep.ts'

export const blobGc: Feature = { name: 'blob-gc', sweeps: [gcSweep] }
