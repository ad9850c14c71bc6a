/** Renaming the server, for operators. */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { pageOf, type Pages } from '../../../http/paged-list.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { actorOf, operator, recordAudit } from '../operators/operators.ts'
import { beginRename, renamePlan, renameStatus } from './host-rename.ts'
import { handleChoices, listOpen } from './host-rename-store.ts'

const openPages: Pages<{ did: Did }> = {
  cursor: {
    write: ({ did }) => did,
    // A malformed cursor is the start of the list.
    read(text) {
      const did = parseDid(text)
      return did && { did }
    },
  },
  maxRows: 100,
}

const renameSchema = Type.Object({
  url: Type.String({ maxLength: 300 }),
  handles: Type.Optional(Type.Union(handleChoices.map((choice) => Type.Literal(choice)))),
})

/** Throws `InvalidRequest` unless the text is an origin. */
function originOf(text: string | null): string {
  const url = URL.parse(text ?? '')
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw invalidRequest('url must be https:// and a host')
  return url.origin
}

export const hostRenameRoutes = [
  route('GET', '/v1/admin/host-rename', {
    auth: operator(),
    handler: async ({ ctx }) => ({ rename: await renameStatus(ctx) }),
  }),
  route('GET', '/v1/admin/host-rename/plan', {
    auth: operator(),
    handler: ({ ctx, url: { searchParams } }) => renamePlan(ctx, originOf(searchParams.get('url'))),
  }),
  route('GET', '/v1/admin/host-rename/open', {
    auth: operator(),
    async handler({ ctx: { db }, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, openPages, (after, limit) =>
        listOpen(db, after?.did ?? null, limit),
      )
      const accounts = []
      for (const row of rows) accounts.push({ ...row, handle: (await accountOf(db, row.did))?.handle ?? null })
      return { accounts, cursor }
    },
  }),
  route('POST', '/v1/admin/host-rename', {
    auth: operator(),
    async handler(call) {
      const { ctx, caller, body } = call
      const { url, handles = 'keep' } = await readJson(body, renameSchema)
      const wanted = originOf(url)
      await beginRename(ctx, { url: wanted, handles }, (tx) =>
        recordAudit(call, tx, { actor: actorOf(caller), action: 'host_renamed', subject: wanted }),
      )
      return { rename: await renameStatus(ctx) }
    },
  }),
]
