import { route, type RouteCall } from '../../../http/endpoint.ts'
import { notFound } from '../../../http/errors.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import { parseOperation } from '../../../protocol/plc.ts'
import { readLog, readOperationsAfter } from './plc-operation-store.ts'

const MAX_OPERATION_BYTES = 100 * 1024
const MAX_EXPORTED = 1000

const refuse = (status: number, message: string) => Response.json({ message }, { status })
const notRegistered = (did: Did) => refuse(404, `DID not registered: ${did}`)
const notAvailable = (did: Did) => refuse(404, `DID not available: ${did}`)

type Call = RouteCall<unknown>

/** Throws `NotFound` unless the path names a DID: these routes are at the root and match unknown paths too. */
function didOf({ path }: Call): Did {
  const did = parseDid(path['did'] ?? '')
  if (!did) throw notFound()
  return did
}

/**
 * Returns the current state of a DID as JSON. As in the public directory, the message of the 404 says whether a DID has
 * ended or never existed.
 */
async function answerState(
  call: Call,
  find: (did: Did) => Promise<object | null>,
  contentType = 'application/json',
): Promise<Response> {
  const did = didOf(call)
  const found = await find(did)
  if (found) return Response.json(found, { headers: { 'Content-Type': contentType } })
  return (await call.ctx.plc.auditLog(did)) ? notAvailable(did) : notRegistered(did)
}

export const plcDirectoryRoutes = [
  route('GET', '/export', {
    async handler({ ctx, url }) {
      const count = Number(url.searchParams.get('count') ?? MAX_EXPORTED)
      if (!Number.isSafeInteger(count) || count < 1) return refuse(400, 'Invalid count parameter')
      const after = Date.parse(url.searchParams.get('after') ?? '') || 0
      const entries = await readOperationsAfter(ctx.db, after, Math.min(count, MAX_EXPORTED))
      return new Response(entries.map((entry) => JSON.stringify(entry)).join('\n'), {
        headers: { 'Content-Type': 'application/jsonlines' },
      })
    },
  }),
  route('GET', '/:did', {
    handler: (call) => answerState(call, call.ctx.plc.document, 'application/did+ld+json'),
  }),
  route('GET', '/:did/data', {
    handler: (call) =>
      answerState(call, async (did) => {
        const state = await call.ctx.plc.state(did)
        return state && { did, ...state }
      }),
  }),
  route('GET', '/:did/log', {
    async handler(call) {
      const log = await readLog(call.ctx.db, didOf(call))
      return log.length === 0
        ? notRegistered(didOf(call))
        : log.filter(({ nullified }) => !nullified).map(({ operation }) => operation)
    },
  }),
  route('GET', '/:did/log/audit', {
    handler: async (call) => (await call.ctx.plc.auditLog(didOf(call))) ?? notRegistered(didOf(call)),
  }),
  route('GET', '/:did/log/last', {
    handler: async (call) => (await call.ctx.plc.lastOperation(didOf(call))) ?? notRegistered(didOf(call)),
  }),
  route('POST', '/:did', {
    async handler(call) {
      const did = didOf(call)
      const operation = parseOperation(await call.body.json(MAX_OPERATION_BYTES))
      // Old logs may begin with a legacy `create` operation, but new ones may not.
      if (!operation || operation.type === 'create') return refuse(400, 'Not a valid operation')
      try {
        await call.ctx.plc.submit(did, operation)
      } catch (error) {
        if (error instanceof PlcDirectoryError) return refuse(error.status ?? 500, error.message)
        throw error
      }
      return new Response('OK')
    },
  }),
]
