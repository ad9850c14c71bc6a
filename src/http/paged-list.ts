/** Lists that are read page by page: how many rows a client gets, and the cursor at which its next page starts. */
import type { Did, Millis } from '../protocol/identifiers.ts'
import { invalidRequest } from './errors.ts'
import { integerParam } from './json-input.ts'

/** How the place of a row in its list is written in a cursor. */
export interface Cursor<Place> {
  write(place: Place): string
  /** Returns null for the start of the list. Throws `InvalidRequest` if the text is malformed. */
  read(text: string): Place | null
}

const number = /^\d{1,15}$/

/** For rows in the order of their number. */
export const bySeq: Cursor<{ seq: number }> = {
  write: ({ seq }) => String(seq),
  read(text) {
    if (!number.test(text)) throw invalidRequest('Malformed cursor')
    return { seq: Number(text) }
  },
}

/**
 * For rows in the order of a number and, where it is the same, of a text, such as `1700000000000|tr_1`. `start` is how
 * every such text begins.
 */
export const byPair = <Place>(
  numberName: keyof Place,
  separator: '|' | '::',
  textName: keyof Place,
  start = '',
): Cursor<Place> => ({
  write: (place) => `${String(place[numberName])}${separator}${String(place[textName])}`,
  read(text) {
    const [first = '', ...rest] = text.split(separator)
    const second = rest.join(separator)
    if (!number.test(first) || second.length <= start.length || !second.startsWith(start))
      throw invalidRequest('Malformed cursor')
    return { [numberName]: Number(first), [textName]: second } as Place
  },
})

export interface DidPlace {
  createdAt: Millis
  did: Did
}

/** For accounts in the order of their creation: `1700000000000::did:plc:…`. */
export const didCursor = byPair<DidPlace>('createdAt', '::', 'did', 'did:')

/** The cursor of the next page; undefined if these rows are the last. */
export const nextCursor = <Place>(cursor: Cursor<Place>, rows: readonly Place[], limit: number): string | undefined =>
  rows.length === limit ? cursor.write(rows.at(-1)!) : undefined

/** The place that the parameter `cursor` names; null for the start of the list. Throws `InvalidRequest`. */
export function placeIn<Place>(params: URLSearchParams, cursor: Cursor<Place>): Place | null {
  const text = params.get('cursor') ?? ''
  return text === '' ? null : cursor.read(text)
}

export interface Pages<Place> {
  cursor: Cursor<Place>
  maxRows: number
  /** Rows of a page whose request names no limit; 50 if omitted. */
  usualRows?: number
  /** Refuse a limit that is too small or too large, instead of taking the nearest one. */
  isStrict?: boolean
}

const USUAL_ROWS = 50

/**
 * Returns the page of a list that the parameters `limit` and `cursor` ask for, and the cursor of the next page. `read`
 * returns rows after a place, from the first one if it is null. Throws `InvalidRequest`.
 */
export async function pageOf<Place, Row extends Place>(
  params: URLSearchParams,
  pages: Pages<Place>,
  read: (after: Place | null, limit: number) => Promise<Row[]>,
): Promise<{ rows: Row[]; cursor: string | undefined }> {
  const limit = limitIn(params, pages)
  const rows = await read(placeIn(params, pages.cursor), limit)
  return { rows, cursor: nextCursor(pages.cursor, rows, limit) }
}

function limitIn(
  params: URLSearchParams,
  { maxRows, usualRows = USUAL_ROWS, isStrict = false }: Omit<Pages<never>, 'cursor'>,
): number {
  const wanted = integerParam(params, 'limit', usualRows)
  if (isStrict && (wanted < 1 || wanted > maxRows)) throw invalidRequest(`limit must be from 1 to ${maxRows}`)
  return clamp(wanted, 1, maxRows)
}

export const clamp = (value: number, min: number, max: number): number => Math.min(max, Math.max(min, value))
