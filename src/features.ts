/** Everything the service does. */
import type { Feature } from './http/feature.ts'
import { serverInfo } from './features/server-info/server-info.ts'

export const features: readonly Feature[] = [serverInfo]
