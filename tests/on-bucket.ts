/**
 * Prints the test files of blobs that depend on where the suite keeps them, for `npm run test:bucket`: those whose
 * imports reach `support/servers/suite-parts.ts`, which alone reads `TEST_BLOBS`, and whose servers leave the place to
 * it. All others do the same in both runs, and run once, in `npm test`.
 */
import { join } from 'node:path'
import { testsReaching } from './on-database.ts'

const FOLDER = 'tests/features/blobs/'
/** Files of which every server says itself where its blobs are. */
export const placed: readonly string[] = ['bucket', 'mirror', 'storage-check'].map((name) => `${FOLDER}${name}.test.ts`)

/** Paths of the test files, from the root of the tree. */
export const testsOnBucket = (): string[] =>
  testsReaching(join(import.meta.dir, 'support/servers/suite-parts.ts')).filter(
    (path) => path.startsWith(FOLDER) && !placed.includes(path),
  )

if (import.meta.main) for (const path of testsOnBucket()) console.log(`./${path}`)
