/** The door of spaces: what an account has in them, for its export, for the running check and for repairs. */
import { blobsOfRecord, changeFault, changesOfSpace, faultsOfSpace } from './space-check.ts'
import {
  deleteSpaceRecords,
  listSpacePlaces,
  listWholeRecords,
  putSpaceRecords,
  replaceSpaceRepo,
} from './space-store.ts'

export { spaceFaults, type ChangeLog } from './space-check.ts'
export { spaceExports } from './space-export.ts'
export type { SpacePlace } from './space-store.ts'

/** For repairs, which work on single rows. */
export const spaceParts = {
  places: listSpacePlaces,
  records: listWholeRecords,
  faults: faultsOfSpace,
  changes: changesOfSpace,
  changeFault,
  blobsOf: blobsOfRecord,
  replaceRepo: replaceSpaceRepo,
  putRecords: putSpaceRecords,
  deleteRecords: deleteSpaceRecords,
}
