/** What a case is about: an account of this server, or a record or a blob of one. */
import { invalidRequest } from '../../../http/errors.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { parseAtUri, parseDid, recordUri, recordUriParts, type Did } from '../../../protocol/identifiers.ts'
import { recordUriOf } from '../../../protocol/record-links.ts'
import { blobTakedown } from '../../data/blobs/blobs.ts'
import { readRecord } from '../../data/repo/repo.ts'
import { accountAt, accountOf } from '../../identity/accounts/accounts.ts'

export interface CaseSubject {
  kind: 'account' | 'record' | 'blob'
  did: Did
  /** `collection/rkey` of the record, or the CID of the blob. Empty for an account. */
  item: string
}

export const accountSubject = (did: Did): CaseSubject => ({ kind: 'account', did, item: '' })
export const blobSubject = (did: Did, cid: string): CaseSubject => ({ kind: 'blob', did, item: cid })

/** The takedown of a subject: `ref` is null if it has none. */
type Takedown = { ref: string | null } | null

const takedowns: Readonly<Record<CaseSubject['kind'], (reader: Reader, subject: CaseSubject) => Promise<Takedown>>> = {
  async account(reader, { did }) {
    const account = await accountOf(reader, did)
    return account && { ref: account.takedownRef }
  },
  async record(reader, { did, item }) {
    const record = await readRecord(reader, did, item)
    return record && { ref: record.takedownRef }
  },
  blob: (reader, { did, item }) => blobTakedown(reader, did, item),
}

/** Returns the takedown of an account, record or blob; null if this server does not have it. */
export const takedownOf = (reader: Reader, subject: CaseSubject): Promise<Takedown> =>
  takedowns[subject.kind](reader, subject)

/** Whether this server has the account, record or blob, in whatever state. */
export const isHere = async (reader: Reader, subject: CaseSubject): Promise<boolean> =>
  (await takedownOf(reader, subject)) !== null

/** How a case names its subject: a DID, the URI of a record, or the CID of a blob after the DID and `#`. */
export function subjectText({ kind, did, item }: CaseSubject): string {
  if (kind === 'record') return recordUri(did, item)
  return kind === 'blob' ? `${did}#${item}` : did
}

/** Returns the record that a URI names, by DID or handle; null if it is not a record of an account here. */
export async function recordSubject(reader: Reader, text: string): Promise<CaseSubject | null> {
  const uri = parseAtUri(text)
  const { authority, collection, rkey } = uri === null ? nothing : recordUriParts(uri)
  if (collection === '' || rkey === '') return null
  const did = parseDid(authority) ?? (await accountAt(reader, authority))?.did ?? null
  return did && { kind: 'record', did, item: `${collection}/${rkey}` }
}

const nothing = { authority: '', collection: '', rkey: '' }

/** The inverse of `subjectText`, which also accepts links to records. Throws `InvalidRequest` for any other text. */
export async function subjectNamed(reader: Reader, text: string): Promise<CaseSubject> {
  const uri = recordUriOf(text)
  if (uri.startsWith('at://')) {
    const record = await recordSubject(reader, uri)
    if (record !== null) return record
  }
  const [name = '', cid = ''] = text.split('#')
  const did = parseDid(name)
  if (did === null)
    throw invalidRequest('subject must be a DID, the URI or link of a record, or a DID, "#" and the CID of a blob')
  return cid === '' ? accountSubject(did) : blobSubject(did, cid)
}
