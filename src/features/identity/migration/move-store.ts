/** SQL of the tables `move_plan` and `move_in`. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** A sign-in at the old server. */
export interface PlannedMove {
  did: Did
  host: string
  sessionWrapped: string
  expiresAt: Millis
}

export const insertPlan = (
  writer: Writer,
  { tokenHash, did, host, sessionWrapped, expiresAt }: PlannedMove & { tokenHash: string },
): Promise<number> =>
  writer.run(sql`
    INSERT INTO move_plan (token_hash, did, host, session_wrapped, expires_at)
    VALUES (${tokenHash}, ${did}, ${host}, ${sessionWrapped}, ${expiresAt})`)

export const findPlan = (reader: Reader, tokenHash: string, now: Millis): Promise<PlannedMove | null> =>
  reader.get(sql`
    SELECT did, host, session_wrapped AS "sessionWrapped", expires_at AS "expiresAt" FROM move_plan
    WHERE token_hash = ${tokenHash} AND expires_at > ${now}`)

export const deletePlansOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM move_plan WHERE did = ${did}`)

export const deletePlansBefore = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM move_plan WHERE expires_at <= ${now}`)

/**
 * The stages in order. In `archive` the holder uploads the repository; in `identity` the holder has the identity
 * changed; in `farewell` the server deactivates the account at the old server. The server performs all stages but the
 * first two of these by itself.
 */
export const stages = [
  'archive',
  'repository',
  'blobs',
  'preferences',
  'identity',
  'submission',
  'activation',
  'farewell',
  'done',
] as const
export type Stage = (typeof stages)[number]

export interface MoveState {
  stage: Stage
  /** What is known of the rotation keys: a `KeyNotes`, as JSON. Null if nothing is. */
  keyNotes: string | null
  /** The signed operation, as JSON. */
  operation: string | null
  unansweredAt: Millis | null
  blobsAfter: string
  blobsLost: number
  tries: number
  fault: string | null
  halted: 'sign-in' | 'decision' | null
}

export interface Move extends MoveState {
  did: Did
  host: string | null
  sessionWrapped: string | null
  recoveryKey: string | null
  beganAt: Millis
  /** When the stage began. */
  changedAt: Millis
}

export const findMove = (reader: Reader, did: Did): Promise<Move | null> =>
  reader.get(sql`
    SELECT did, host, stage, session_wrapped AS "sessionWrapped", recovery_key AS "recoveryKey", key_notes AS "keyNotes",
      operation, unanswered_at AS "unansweredAt", blobs_after AS "blobsAfter", blobs_lost AS "blobsLost",
      tries, fault, halted, began_at AS "beganAt", changed_at AS "changedAt"
    FROM move_in WHERE did = ${did}`)

/** Begin a move, or continue an existing one with another sign-in at the same old server. */
export const putMove = (
  tx: Tx,
  move: Pick<Move, 'did' | 'host' | 'stage' | 'sessionWrapped' | 'recoveryKey' | 'keyNotes' | 'operation'> & {
    now: Millis
  },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO move_in (did, host, stage, session_wrapped, recovery_key, key_notes, operation, began_at, changed_at)
    VALUES (${move.did}, ${move.host}, ${move.stage}, ${move.sessionWrapped}, ${move.recoveryKey}, ${move.keyNotes},
      ${move.operation}, ${move.now}, ${move.now})
    ON CONFLICT (did) DO UPDATE SET halted = NULL, fault = NULL,
      session_wrapped = CASE WHEN move_in.host = excluded.host AND excluded.session_wrapped IS NOT NULL
        THEN excluded.session_wrapped ELSE move_in.session_wrapped END`)

/** Store the state, unless the stage has changed meanwhile. Returns 0 then. */
export const updateMove = (
  writer: Writer,
  { did, stage }: Pick<Move, 'did' | 'stage'>,
  state: MoveState,
  now: Millis,
): Promise<number> =>
  writer.run(sql`
    UPDATE move_in SET stage = ${state.stage}, key_notes = ${state.keyNotes}, operation = ${state.operation},
      unanswered_at = ${state.unansweredAt}, blobs_after = ${state.blobsAfter}, blobs_lost = ${state.blobsLost},
      tries = ${state.tries}, fault = ${state.fault}, halted = ${state.halted},
      changed_at = CASE WHEN stage = ${state.stage} THEN changed_at ELSE ${now} END
    WHERE did = ${did} AND stage = ${stage}`)

export const updateMoveSession = (writer: Writer, did: Did, sessionWrapped: string | null): Promise<number> =>
  writer.run(sql`UPDATE move_in SET session_wrapped = ${sessionWrapped} WHERE did = ${did}`)

export const deleteMove = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM move_in WHERE did = ${did}`)

export const deleteMovesDoneBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM move_in WHERE stage = 'done' AND changed_at < ${instant}`)
