/** Stands in for `SQL` of the runtime: connects to the database of the present world. */
import { held } from './seams.ts'

export const SQL = function (options: never): unknown {
  if (held.connect === null) throw new Error('there is no world')
  return held.connect(options)
} as unknown as new (options: unknown) => unknown
