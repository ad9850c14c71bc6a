/** Turns the JSON of a record into its block, with all checks that do not need the repository. */
import { invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { type DataObject, encode } from '../../../protocol/cbor.ts'
import { cidOfCbor } from '../../../protocol/cid.ts'
import { findBlobs, jsonToObject } from '../../../protocol/data-model.ts'
import { recordKeyFault, validateRecord } from '../../../protocol/lexicons/lexicons.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { validateAsPublished } from '../published-lexicons/published-lexicons.ts'
import type { PreparedRecord } from './commit-writer.ts'

export type ValidationStatus = 'valid' | 'unknown'

export interface RecordInput {
  collection: string
  /** That of the caller, or a generated one, which not every record type allows. */
  rkey: string
  record: Record<string, unknown>
  /** True: the lexicon must be known. False: do not validate. Undefined: validate if the lexicon is known. */
  validate?: boolean
}

/**
 * Validate and encode a record. `status` is null if the caller asked for no validation.
 *
 * Refuses with `InvalidRequest` a record that its lexicon refuses or that is outside the data model.
 */
export async function prepareRecord(
  ctx: Context,
  { collection, rkey, record, validate }: RecordInput,
): Promise<{ record: PreparedRecord; status: ValidationStatus | null }> {
  const { $type = collection } = record
  if ($type !== collection) throw invalidRequest(`Invalid $type: expected ${collection}, got ${String($type)}`)
  const json = record['$type'] === undefined ? { ...record, $type } : record
  const data = dataOf(json)
  const status =
    validate === false ? null : await checkLexicon(ctx, { collection, rkey, record: json }, validate === true)
  const { blobs, legacy } = findBlobs(data)
  if (legacy.length > 0) throw invalidRequest(`Legacy blobs are not allowed (${legacy[0]})`)
  const bytes = encode(data)
  return {
    record: {
      cid: cidOfCbor(bytes),
      bytes,
      blobs,
      isValidated: status === 'valid',
      subject: subjectOf(collection, data),
    },
    status,
  }
}

function dataOf(json: Record<string, unknown>): DataObject {
  try {
    return jsonToObject(json)
  } catch (error) {
    if (error instanceof Malformed) throw invalidRequest(`${error.message} at $.record${error.path}`)
    throw error
  }
}

/** A lexicon that is not built in but must be known is looked up among the published ones. */
async function checkLexicon(
  ctx: Context,
  written: Omit<RecordInput, 'validate'>,
  mustBeKnown: boolean,
): Promise<ValidationStatus> {
  const { collection, rkey, record } = written
  const keyFault = recordKeyFault(collection, rkey)
  if (keyFault !== null) throw invalidRequest(keyFault)
  const known = validateRecord(collection, record)
  const outcome = known.status === 'unknown' && mustBeKnown ? await validateAsPublished(ctx, written) : known
  if (outcome.status === 'unknown' && mustBeKnown) throw invalidRequest(`Unknown lexicon type: ${collection}`)
  if (outcome.status === 'invalid') throw invalidRequest(outcome.message)
  return outcome.status
}

/** Record types limited to one per subject. */
const subjects: Record<string, (record: DataObject) => unknown> = {
  'app.bsky.feed.like': ({ subject }) => (subject as DataObject | undefined)?.['uri'],
  'app.bsky.feed.repost': ({ subject }) => (subject as DataObject | undefined)?.['uri'],
  'app.bsky.graph.follow': ({ subject }) => subject,
  'app.bsky.graph.block': ({ subject }) => subject,
}

/** Whether records of a collection may be about a subject. */
export const hasSubjects = (collection: string): boolean => Object.hasOwn(subjects, collection)

/** URI or DID that a like, repost, follow or block is about; null for other records. */
export function subjectOf(collection: string, record: DataObject): string | null {
  const subject = hasSubjects(collection) ? subjects[collection]!(record) : null
  return typeof subject === 'string' ? subject : null
}
