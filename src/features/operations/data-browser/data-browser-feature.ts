/** The data browser: its pages for account holders, and its endpoints. The console has the pages for operators. */
import { route } from '../../../http/endpoint.ts'
import { forbidden } from '../../../http/errors.ts'
import type { Feature } from '../../../http/feature.ts'
import { page } from '../../../http/page.ts'
import { leavingOwner } from '../../access/auth/auth.ts'
import { accountName, type PageCall } from '../../access/page-parts/page-parts.ts'
import { holderPage, holderUrl, type Holder } from '../../access/pages/pages.ts'
import { namedAccount, operator } from '../operators/operators.ts'
import { openBlob, openBlobAs, readData, readDataAs, shownData } from './data-browser.ts'
import { dataTexts } from './data-texts.ts'

const PAGE = '/account/data'
const BLOB = `${PAGE}/blob`

async function show(call: PageCall, { account }: Holder): Promise<Response> {
  const { ctx, url } = call
  const { did } = account
  return page(call, {
    title: dataTexts.title,
    wide: true,
    body: shownData(await readData(ctx, did, url.searchParams), url.searchParams, {
      link: (parameters) => holderUrl(PAGE, did, parameters),
      blobUrl: (cid) => holderUrl(BLOB, did, { cid }),
      isOperator: false,
      home: holderUrl('/account', did),
      account: accountName(account),
    }),
  })
}

/** Throws `Forbidden` if a page of another site sends the request. */
function refuseOtherSites({ request }: PageCall): void {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none')
    throw forbidden('This file is shown only on pages of this server.')
}

export const dataBrowser: Feature = {
  name: 'data-browser',
  routes: [
    holderPage(PAGE, show),
    holderPage(BLOB, async (call, { account }) => openBlob(call, account.did, call.url.searchParams.get('cid') ?? ''), {
      requires: refuseOtherSites,
    }),
    route('GET', '/v1/account/data', {
      auth: leavingOwner,
      handler: ({ ctx, caller, url }) => readData(ctx, caller.did, url.searchParams),
    }),
    route('GET', '/v1/account/data/blob', {
      auth: leavingOwner,
      handler: (call) => openBlob(call, call.caller.did, call.url.searchParams.get('cid') ?? ''),
    }),
    route('GET', '/v1/admin/accounts/:did/data', {
      auth: operator('moderate'),
      async handler(call) {
        const { did } = await namedAccount(call.ctx.db, call.path)
        return readDataAs(call, call.caller, did, call.url.searchParams)
      },
    }),
    route('GET', '/v1/admin/accounts/:did/data/blob', {
      auth: operator('moderate'),
      async handler(call) {
        const { did } = await namedAccount(call.ctx.db, call.path)
        return openBlobAs(call, call.caller, did, call.url.searchParams.get('cid') ?? '')
      },
    }),
  ],
}
