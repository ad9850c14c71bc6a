/** Methods of `com.atproto.space`: what an account writes in spaces, and what it reads of that. */
import { perAccount, procedure, query, type Exchange } from '../../../http/endpoint.ts'
import { chargeBytes, chargedWrite } from '../../../http/limiting.ts'
import { writePoints } from '../../../platform/running/limits.ts'
import type { LexMethods } from '../../../protocol/lexicons/generated/types.ts'
import { parseSpaceUri } from '../../../protocol/space-address.ts'
import { writesOf, type AccessCaller } from '../../access/callers/callers.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did, SpaceUri } from '../../../protocol/identifiers.ts'
import { spaceBlobs } from '../blobs/blobs.ts'
import { requireOwnRead, requireOwnRepo, spacePermissions, spaceReader, spaceWriter } from './space-access.ts'
import { latestCommit, spaceOps, spaceRecord, spaceRecords } from './space-reading.ts'
import { listSpacesOf } from './space-store.ts'
import { writeToSpace, type SpaceWrite, type SpaceWriteInput, type SpaceWriteResult } from './space-writing.ts'

/** Bound of the request body. Records arrive as JSON, which is longer than the stored form. */
const MAX_BYTES = 1_000_000

const reads = perAccount('spaceRead')
const writing = { auth: spaceWriter, capability: 'spaces', maxBytes: MAX_BYTES } as const
const reading = { auth: spaceReader, capability: 'spaces', limit: reads } as const

/** Refuses a caller whose grant does not suffice, and any repository but the caller's own. Returns the parameters. */
function ownPlace<Params extends { space: SpaceUri; repo: Did }>({
  ctx,
  caller,
  params,
  replyHeaders,
}: {
  ctx: Context
  caller: AccessCaller
  params: Params
  replyHeaders: Headers
}): Params {
  requireOwnRepo(caller, params.repo)
  requireOwnRead(spacePermissions(ctx, caller), parseSpaceUri(params.space)!)
  replyHeaders.set('Cache-Control', 'private, no-store')
  return params
}

async function write(call: Exchange & { caller: AccessCaller }, input: SpaceWriteInput): Promise<SpaceWriteResult[]> {
  const { results, bytes } = await chargedWrite(call, () => writeToSpace(call.ctx, call.caller, input))
  chargeBytes(call, input.writes, bytes)
  return results
}

export const spaceRoutes = [
  procedure('com.atproto.space.createRecord', {
    ...writing,
    limit: writesOf(() => writePoints.create),
    async handler(call) {
      const { collection, rkey, record, ...input } = call.input
      return written((await write(call, { ...input, writes: [{ action: 'create', collection, rkey, record }] }))[0]!)
    },
  }),

  procedure('com.atproto.space.putRecord', {
    ...writing,
    limit: writesOf(() => writePoints.put),
    async handler(call) {
      const { collection, rkey, record, ...input } = call.input
      return written((await write(call, { ...input, writes: [{ action: 'put', collection, rkey, record }] }))[0]!)
    },
  }),

  procedure('com.atproto.space.deleteRecord', {
    ...writing,
    limit: writesOf(() => writePoints.delete),
    async handler(call) {
      const { collection, rkey, ...input } = call.input
      await write(call, { ...input, writes: [{ action: 'delete', collection, rkey, lenient: true }] })
      return {}
    },
  }),

  procedure('com.atproto.space.applyWrites', {
    ...writing,
    limit: writesOf(({ writes }: LexMethods['com.atproto.space.applyWrites']['input']) =>
      writes.reduce((points, { $type }) => points + writePoints[actions[$type]], 0),
    ),
    async handler(call) {
      const { writes, ...input } = call.input
      const results = await write(call, { ...input, writes: writes.map(writeOf) })
      return { results: results.map((result, i) => resultOf(writes[i]!, result)) }
    },
  }),

  query('com.atproto.space.getRecord', {
    ...reading,
    handler: (call) => spaceRecord(call.ctx, ownPlace(call)),
  }),
  query('com.atproto.space.listRecords', {
    ...reading,
    handler: (call) => spaceRecords(call.ctx, ownPlace(call)),
  }),
  query('com.atproto.space.getLatestCommit', {
    ...reading,
    handler: (call) => latestCommit(call.ctx, ownPlace(call)),
  }),
  query('com.atproto.space.listRepoOps', {
    ...reading,
    handler: (call) => spaceOps(call.ctx, ownPlace(call)),
  }),

  query('com.atproto.space.listBlobs', {
    ...reading,
    async handler(call) {
      const { repo, ...params } = ownPlace(call)
      const { cids, next } = await spaceBlobs.list(call.ctx.db, { ...params, did: repo })
      return { cids, ...(next !== null && { cursor: next }) }
    },
  }),
  query('com.atproto.space.getBlob', {
    ...reading,
    handler(call) {
      const { repo, space, cid } = ownPlace(call)
      return spaceBlobs.download(call, { did: repo, space, cid })
    },
  }),

  query('com.atproto.space.listSpaces', {
    ...reading,
    async handler({ ctx, caller, params: { spaceType, did, limit, cursor = '' }, replyHeaders }) {
      requireOwnRead(spacePermissions(ctx, caller), { type: spaceType ?? '*', authority: did ?? '*', skey: '*' })
      replyHeaders.set('Cache-Control', 'private, no-store')
      const range = { type: spaceType, authority: did, after: cursor, limit }
      const spaces = await listSpacesOf(ctx.db, caller.did, range)
      return {
        spaces: spaces.map((uri) => ({ uri })),
        ...(spaces.length === limit && { cursor: spaces.at(-1) }),
      }
    },
  }),
]

type BatchedWrite = LexMethods['com.atproto.space.applyWrites']['input']['writes'][number]

const actions = {
  'com.atproto.space.applyWrites#create': 'create',
  'com.atproto.space.applyWrites#update': 'update',
  'com.atproto.space.applyWrites#delete': 'delete',
} as const satisfies Record<BatchedWrite['$type'], SpaceWrite['action']>

function writeOf(write: BatchedWrite): SpaceWrite {
  switch (write.$type) {
    case 'com.atproto.space.applyWrites#create':
      return { action: 'create', collection: write.collection, rkey: write.rkey, record: write.value }
    case 'com.atproto.space.applyWrites#update':
      return { action: 'update', collection: write.collection, rkey: write.rkey, record: write.value }
    case 'com.atproto.space.applyWrites#delete':
      return { action: 'delete', collection: write.collection, rkey: write.rkey }
  }
}

function resultOf({ $type }: BatchedWrite, result: SpaceWriteResult) {
  switch ($type) {
    case 'com.atproto.space.applyWrites#create':
      return { $type: 'com.atproto.space.applyWrites#createResult' as const, ...written(result) }
    case 'com.atproto.space.applyWrites#update':
      return { $type: 'com.atproto.space.applyWrites#updateResult' as const, ...written(result) }
    case 'com.atproto.space.applyWrites#delete':
      return { $type: 'com.atproto.space.applyWrites#deleteResult' as const }
  }
}

const written = ({ cid, ...result }: SpaceWriteResult) => ({ ...result, cid: cid!.toString() })
