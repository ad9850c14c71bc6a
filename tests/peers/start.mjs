import { PDS } from '@atproto/pds'

await PDS.run()
