/** Methods of `com.atproto.repo` that change records. */
import { invalidRequest } from '../../../http/errors.ts'
import { procedure, type Exchange } from '../../../http/endpoint.ts'
import { chargeBytes, chargedWrite } from '../../../http/limiting.ts'
import { MAX_EVENT_BYTES, MAX_OPS_PER_COMMIT } from '../../../protocol/commit.ts'
import type { LexMethods } from '../../../protocol/lexicons/generated/types.ts'
import { writePoints } from '../../../platform/running/limits.ts'
import { access } from '../../access/auth/auth.ts'
import { writesOf, type AccessCaller } from '../../access/callers/callers.ts'
import { EventTooLarge, type CommitMeta } from './commit-writer.ts'
import {
  requireOwnRepo,
  writeRecords,
  type RecordWriteInput,
  type WriteInput,
  type WriteOutcome,
  type WriteResult,
} from './record-writing.ts'

const writer = access({ grants: 'any', agents: true, handlerRevalidates: true })
/** Bound of the request body. Records arrive as JSON, which is longer than the stored form. */
const MAX_BYTES = 1_000_000

async function write(
  call: Exchange & { caller: AccessCaller },
  repo: string,
  input: WriteInput,
): Promise<WriteOutcome> {
  const { ctx, caller } = call
  const { writes } = input
  try {
    const outcome = await chargedWrite(call, async () => {
      if (writes.length > MAX_OPS_PER_COMMIT) throw invalidRequest(`Too many writes. Max: ${MAX_OPS_PER_COMMIT}`)
      return writeRecords(ctx, caller, await requireOwnRepo(ctx, caller, repo), input)
    })
    if (outcome.commit !== null) chargeBytes(call, writes, outcome.commit.paidBytes)
    return outcome
  } catch (error) {
    if (error instanceof EventTooLarge) chargeBytes(call, writes, MAX_EVENT_BYTES)
    throw error
  }
}

const metaOf = (commit: CommitMeta | null) =>
  commit === null ? {} : { commit: { cid: commit.cid.toString(), rev: commit.rev } }

export const writeRoutes = [
  procedure('com.atproto.repo.createRecord', {
    auth: writer,
    limit: writesOf(() => writePoints.create),
    maxBytes: MAX_BYTES,
    async handler(call) {
      const { repo, collection, rkey, record, validate, swapCommit } = call.input
      const { commit, results } = await write(call, repo, {
        writes: [{ action: 'create', collection, rkey, record, replacesSame: validate !== false }],
        validate,
        swapCommit,
      })
      const { uri, cid, ...status } = results[0]!
      return { uri, cid: cid!.toString(), ...metaOf(commit), ...status }
    },
  }),

  procedure('com.atproto.repo.putRecord', {
    auth: writer,
    limit: writesOf(() => writePoints.put),
    maxBytes: MAX_BYTES,
    async handler(call) {
      const { repo, collection, rkey, record, validate, swapRecord, swapCommit } = call.input
      const { commit, results } = await write(call, repo, {
        writes: [{ action: 'put', collection, rkey, record, swapRecord }],
        validate,
        swapCommit,
      })
      const { uri, cid, ...status } = results[0]!
      return { uri, cid: cid!.toString(), ...metaOf(commit), ...status }
    },
  }),

  procedure('com.atproto.repo.deleteRecord', {
    auth: writer,
    limit: writesOf(() => writePoints.delete),
    async handler(call) {
      const { repo, collection, rkey, swapRecord, swapCommit } = call.input
      const { commit } = await write(call, repo, {
        writes: [{ action: 'delete', collection, rkey, swapRecord, lenient: true }],
        swapCommit,
      })
      return metaOf(commit)
    },
  }),

  procedure('com.atproto.repo.applyWrites', {
    auth: writer,
    limit: writesOf(({ writes }: LexMethods['com.atproto.repo.applyWrites']['input']) =>
      writes.reduce((points, { $type }) => points + writePoints[actions[$type]], 0),
    ),
    maxBytes: MAX_BYTES,
    async handler(call) {
      const { repo, writes, validate, swapCommit } = call.input
      const { commit, results } = await write(call, repo, { writes: writes.map(inputOf), validate, swapCommit })
      return { ...metaOf(commit), results: results.map((result, i) => resultOf(writes[i]!, result)) }
    },
  }),
]

type BatchedWrite = LexMethods['com.atproto.repo.applyWrites']['input']['writes'][number]

const actions = {
  'com.atproto.repo.applyWrites#create': 'create',
  'com.atproto.repo.applyWrites#update': 'update',
  'com.atproto.repo.applyWrites#delete': 'delete',
} as const satisfies Record<BatchedWrite['$type'], RecordWriteInput['action']>

function inputOf(write: BatchedWrite): RecordWriteInput {
  switch (write.$type) {
    case 'com.atproto.repo.applyWrites#create':
      return { action: 'create', collection: write.collection, rkey: write.rkey, record: write.value }
    case 'com.atproto.repo.applyWrites#update':
      return { action: 'update', collection: write.collection, rkey: write.rkey, record: write.value }
    case 'com.atproto.repo.applyWrites#delete':
      return { action: 'delete', collection: write.collection, rkey: write.rkey }
  }
}

function resultOf({ $type }: BatchedWrite, { uri, cid, ...status }: WriteResult) {
  switch ($type) {
    case 'com.atproto.repo.applyWrites#create':
      return { $type: 'com.atproto.repo.applyWrites#createResult' as const, uri, cid: String(cid), ...status }
    case 'com.atproto.repo.applyWrites#update':
      return { $type: 'com.atproto.repo.applyWrites#updateResult' as const, uri, cid: String(cid), ...status }
    case 'com.atproto.repo.applyWrites#delete':
      return { $type: 'com.atproto.repo.applyWrites#deleteResult' as const }
  }
}
