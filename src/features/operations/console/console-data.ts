/** An account's data, for moderators. The audit log records who looked at what. */
import { parseDid } from '../../../protocol/identifiers.ts'
import { seeOther, type PageCall } from '../../access/page-parts/page-parts.ts'
import { requireNavigation } from '../../access/pages/pages.ts'
import { dataTexts, openBlobAs, shownData } from '../data-browser/data-browser.ts'
import { requireMay } from '../operators/operators.ts'
import { accountUrl } from './console-accounts.ts'
import { SIGN_IN } from './console-entry.ts'
import { framed, refusedPage } from './console-layout.ts'
import { ask, deskOf, type Desk } from './console-session.ts'

export async function dataPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const did = searchParams.get('did') ?? ''
  const wanted = new URLSearchParams(searchParams)
  wanted.delete('did')
  const answer = await ask(desk, `/v1/admin/accounts/${encodeURIComponent(did)}/data?${wanted}`)
  if (!answer.ok) return refusedPage(desk, dataTexts.title, answer)
  const addressOf = (path: string, parameters: Readonly<Record<string, string>>) =>
    `${path}?${new URLSearchParams({ did, ...parameters })}`
  return framed(desk, {
    title: did,
    body: shownData(answer.body as object, wanted, {
      link: (parameters) => addressOf('/admin/data', parameters),
      blobUrl: (cid) => addressOf('/admin/data/blob', { cid }),
      isOperator: true,
      home: accountUrl(did),
      account: did,
    }),
  })
}

export async function showBlob(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const desk = await deskOf(call)
  if (desk === null) return seeOther(SIGN_IN)
  requireMay(desk.who, 'moderate')
  const { searchParams } = call.url
  const did = parseDid(searchParams.get('did') ?? '')
  return did === null ? seeOther('/admin') : openBlobAs(call, desk.who, did, searchParams.get('cid') ?? '')
}
