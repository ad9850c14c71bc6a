/** The server of a test file with the services around it, on whatever database the suite runs. */
import { startPds } from './servers/pds.ts'
import { worldOf } from './world-of.ts'

export const useWorld = worldOf(startPds)
