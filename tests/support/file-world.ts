/** The server of a test file with the services around it, on a file whichever database the suite runs on. */
import { startPdsOnFile } from './servers/file-pds.ts'
import { worldOf } from './world-of.ts'

export const useWorldOnFile = worldOf(startPdsOnFile)
