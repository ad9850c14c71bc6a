/**
 * Prints the path of a file of timings for the test files that `tests/timings.json` does not know yet, which it writes.
 * The runner puts its files in an order only if it has a time for each: a file of unknown length otherwise takes the
 * long ones that come after it to the end of the run.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { files } from './timings.json'

const ROOT = join(import.meta.dir, '..')
const PATH = 'node_modules/.cache/holdfast-timings.json'
/** What is begun early cannot end late. */
const UNKNOWN_MILLIS = 10_000

const known: Readonly<Record<string, number>> = files
const unknown = [...new Bun.Glob('{src,tests}/**/*.test.ts').scanSync({ cwd: ROOT })].filter(
  (path) => known[path] === undefined,
)
mkdirSync(dirname(join(ROOT, PATH)), { recursive: true })
writeFileSync(
  join(ROOT, PATH),
  JSON.stringify({ version: 1, files: Object.fromEntries(unknown.map((path) => [path, UNKNOWN_MILLIS])) }),
)
console.log(PATH)
