/**
 * A PLC directory inside the server, so that a development server starts without any other service. It stores its logs
 * in the same database. It validates operations and serves the same HTTP API as the public directory, so other services
 * can use this server as their directory.
 *
 * Source: did:plc method specification, "Operation Serialization, Signing, and Validation".
 */
import type { Feature } from '../../../http/feature.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { PlcDirectoryError, type PlcDirectory } from '../../../platform/network/directory-client.ts'
import { renderDidDocument } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  checkNext,
  fitsDirectory,
  headOf,
  MAX_OPERATION_BYTES,
  operationCid,
  stateOf,
  type LogOperation,
  type PlcFault,
} from '../../../protocol/plc.ts'
import { appendOperation, nullify, readLog } from './plc-operation-store.ts'
import { plcDirectoryRoutes } from './plc-directory-routes.ts'

export const plcDirectory: Feature = {
  name: 'plc-directory',
  routes: plcDirectoryRoutes,
  enabled: ({ config }) => config.plcDirectoryUrl === null,
}

const faultMessages: Record<PlcFault | 'too-large', string> = {
  malformed: 'Not a valid operation',
  'unsupported-key': 'Unsupported key type',
  'rotation-keys': 'An operation names 1 to 5 rotation keys',
  'verification-methods': 'An operation names at most 10 verification methods, with names of at most 32 characters',
  'too-large': `An operation may have at most ${MAX_OPERATION_BYTES} bytes`,
  misordered: 'Operations not correctly ordered',
  'bad-signature': 'Invalid signature on op',
  'wrong-did': 'Hash of genesis operation does not match DID identifier',
  'too-late': 'Recovery operation occurred outside of the allowed 72 hr recovery window',
}

/**
 * The directory for the rest of this server, without HTTP. `submit` throws `PlcDirectoryError` 400 for an invalid
 * operation.
 */
export function localPlcDirectory(ctx: Pick<Context, 'db' | 'clock'>): PlcDirectory {
  const { db } = ctx
  const head = async (did: Did) => headOf(await readLog(db, did))?.operation ?? null
  const state = async (did: Did) => {
    const operation = await head(did)
    return operation && stateOf(operation)
  }
  return {
    state,
    lastOperation: head,
    async document(did) {
      const found = await state(did)
      return found && renderDidDocument(did, found)
    },
    async auditLog(did) {
      const log = await readLog(db, did)
      return log.length === 0 ? null : log
    },
    async submit(did, operation) {
      const fault = await addOperation(ctx, did, operation)
      if (fault) throw new PlcDirectoryError(400, faultMessages[fault])
    },
  }
}

/** Append an operation to the log of its DID. Returns null, or the fault if the operation is invalid. */
async function addOperation(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  did: Did,
  operation: LogOperation,
): Promise<PlcFault | 'too-large' | null> {
  if (!fitsDirectory(operation)) return 'too-large'
  const now = clock.now()
  return db.transaction(async (tx) => {
    const outcome = checkNext(did, await readValidOperations(tx, did), operation, now)
    if (!outcome.ok) return outcome.fault
    await nullify(tx, did, outcome.nullified)
    await appendOperation(tx, { did, cid: operationCid(operation).toString(), operation, now })
    return null
  })
}

async function readValidOperations(reader: Reader, did: Did) {
  const log = await readLog(reader, did)
  return log
    .filter(({ nullified }) => !nullified)
    .map(({ cid, createdAt, operation }) => ({ cid, createdAt: Date.parse(createdAt), operation }))
}
