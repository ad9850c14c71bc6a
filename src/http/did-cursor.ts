/** Cursor of a list by time and DID, oldest first: `<time of the last entry, in milliseconds>::<its DID>`. */
import type { Did, Millis } from '../protocol/identifiers.ts'
import { invalidRequest } from './errors.ts'

/** Place of an entry in such a list. */
export interface DidPlace {
  createdAt: Millis
  did: Did
}

export const didCursor = ({ createdAt, did }: DidPlace): string => `${createdAt}::${did}`

/** Returns the place after which the list continues, or null for its start. Throws `InvalidRequest` if malformed. */
export function parseDidCursor(cursor: string | undefined): DidPlace | null {
  if (cursor === undefined) return null
  const [, createdAt, did] = /^([0-9]{1,15})::(did:.+)$/.exec(cursor) ?? []
  if (createdAt === undefined) throw invalidRequest('Malformed cursor')
  return { createdAt: Number(createdAt), did: did as Did }
}
