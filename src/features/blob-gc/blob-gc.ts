/** The garbage collector of blobs. Apart from blobs themselves, which repositories need: it alone needs repositories too. */
import type { Feature } from '../../http/feature.ts'
import { gcSweep } from './gc-sweep.ts'

export const blobGc: Feature = { name: 'blob-gc', sweeps: [gcSweep] }
