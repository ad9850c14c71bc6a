import { inWords, OperatorError } from '../base/operator-error.ts'
import { DatabaseUnavailable } from '../platform/database/database.ts'
import { fileFault } from '../platform/files/system-faults.ts'
import { BucketUnavailable, explainBucket } from '../platform/network/bucket-faults.ts'

/** Returns the message of an error that the operator can act on, or the stack of any other error. */
export function describeFailure(error: unknown): string {
  if (error instanceof OperatorError) return error.message
  if (error instanceof BucketUnavailable) return inWords(explainBucket(error)).message
  if (error instanceof DatabaseUnavailable)
    return `${error.message}${error.cause instanceof Error ? ` (${error.cause.message})` : ''}`
  const file = fileFault(error)
  if (file !== null) return inWords(file).message
  if (!(error instanceof Error)) return String(error)
  const { code } = error as NodeJS.ErrnoException
  return code === undefined ? (error.stack ?? error.message) : error.message
}
