/**
 * The door of the data browser: a repository and its blobs, as account holders and moderators see them, in pages.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { html, type Html } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { downloadBlob } from '../../data/blobs/blobs.ts'
import { actorOf, recordAudit, type Operator } from '../operators/operators.ts'
import { blobsView, collectionsView, commitsView, recordsView, recordView } from './browsed-data.ts'
import {
  blobsPart,
  collectionsPart,
  commitsPart,
  isShownType,
  recordPart,
  recordsPart,
  type Surroundings,
} from './data-view.ts'

export { dataTexts } from './data-texts.ts'

interface Part {
  read(reader: Reader, did: Did, params: URLSearchParams): Promise<object>
  show(around: Surroundings, view: object): Html
}

const part = <View extends object>(
  read: (reader: Reader, did: Did, params: URLSearchParams) => Promise<View>,
  show: (around: Surroundings, view: View) => Html,
): Part => ({ read, show: (around, view) => show(around, view as View) })

const cursorIn = (params: URLSearchParams): string | null => params.get('cursor') || null

/** The parts, by the value of the parameter `part`. */
const parts: Readonly<Record<string, Part>> = {
  collections: part((reader, did, params) => collectionsView(reader, did, cursorIn(params)), collectionsPart),
  records: part(
    (reader, did, params) => recordsView(reader, did, params.get('collection') ?? '', cursorIn(params)),
    recordsPart,
  ),
  record: part((reader, did, params) => recordView(reader, did, params.get('path') ?? ''), recordPart),
  blobs: part((reader, did, params) => blobsView(reader, did, cursorIn(params)), blobsPart),
  commits: part((reader, did, params) => commitsView(reader, did, cursorIn(params)), commitsPart),
}

function partIn(params: URLSearchParams): Part {
  const name = params.get('part') ?? 'collections'
  if (!Object.hasOwn(parts, name)) throw invalidRequest(`part: must be one of ${Object.keys(parts).join(', ')}`)
  return parts[name]!
}

/** Returns the part of an account's data that the parameters name. Throws `InvalidRequest` and `NotFound`. */
export const readData = ({ db }: Context, did: Did, params: URLSearchParams): Promise<object> =>
  partIn(params).read(db, did, params)

/** Returns a part of an account's data as HTML. */
export const shownData = (view: object, params: URLSearchParams, around: Surroundings): Html =>
  html`${partIn(params).show(around, view)}`

/** Read an account's data for an operator, with an audit entry. Throws as `readData` and `recordAudit` do. */
export async function readDataAs(
  exchange: Exchange,
  operator: Operator,
  did: Did,
  params: URLSearchParams,
): Promise<object> {
  const view = await readData(exchange.ctx, did, params)
  await audit(exchange, operator, did, Object.fromEntries(params))
  return view
}

const audit = (exchange: Exchange, operator: Operator, did: Did, seen: object): Promise<void> =>
  exchange.ctx.db.transaction((tx) =>
    recordAudit(exchange, tx, {
      actor: actorOf(operator),
      action: 'account_data_read',
      subject: did,
      detail: JSON.stringify(seen),
    }),
  )

/**
 * Returns the bytes of a blob for a page, whether or not they are public. A browser shows an image, saves everything
 * else, and runs nothing. Throws as `downloadBlob` does.
 */
export async function openBlob(exchange: Exchange, did: Did, cid: string): Promise<Response> {
  return shownBlob(exchange, await downloadBlob(exchange, { did, admin: false }, did, cid), cid)
}

/** A cache must ask again each time, because a blob may be taken down. */
function shownBlob({ replyHeaders }: Exchange, response: Response, cid: string): Response {
  replyHeaders.set('Cache-Control', 'private, no-cache')
  response.headers.set('Cross-Origin-Resource-Policy', 'same-origin')
  if (isShownType(response.headers.get('content-type') ?? ''))
    response.headers.set('Content-Disposition', `inline; filename="${cid}"`)
  return response
}

/**
 * As `openBlob`, for an operator, with an audit entry. Also opens blobs that are taken down or in quarantine. Throws as
 * `downloadBlob` and `recordAudit` do.
 */
export async function openBlobAs(exchange: Exchange, operator: Operator, did: Did, cid: string): Promise<Response> {
  await audit(exchange, operator, did, { blob: cid })
  return shownBlob(exchange, await downloadBlob(exchange, 'moderator', did, cid), cid)
}
