/** SQL of the `operator_audit` table, an append-only log of operator actions. */
import { sql, sqlAnd, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export const auditActions = [
  'account_takedown',
  'account_restore',
  'host_renamed',
  'account_exported',
  'account_data_read',
  'account_imported',
  'credentials_revoked',
  'access_ended',
  'waitlist_invited',
  'waitlist_removed',
  'configuration_changed',
  'factors_reset',
  'claim_codes_minted',
  'claim_code_revoked',
  'pairing_code_minted',
  'device_registered',
  'device_revoked',
  'transfer_cancelled',
  'request_crawl',
  'email_updated',
  'reset_token_issued',
  'signing_key_created',
  'account_deleted',
  'handle_updated',
  'password_updated',
  'steps_retried',
  'steps_dropped',
  'agents_ended',
  'delegation_ended',
  'sender_key_rotated',
  'sender_key_revoked',
  'quota_set',
  'account_deactivated',
  'account_activated',
  'record_takedown',
  'record_restore',
  'blob_takedown',
  'blob_restore',
  'email_sent',
  'invites_disabled',
  'invites_enabled',
  'operator_role_set',
  'operator_role_removed',
  'operator_signed_in',
  'operator_session_ended',
  'case_opened',
  'case_noted',
  'case_deadline_set',
  'case_decided',
  'case_appeal_answered',
  'blob_quarantined',
  'blob_released',
  'sign_ups_undone',
  'sweep_run',
] as const
export type AuditAction = (typeof auditActions)[number]

export interface AuditRow {
  seq: number
  id: string
  actor: string
  action: AuditAction
  subject: string | null
  outcome: string
  detail: string | null
  /** Why, in the operator's words. */
  reason: string | null
  createdAt: Millis
}

interface NewAudit {
  actor: string
  action: AuditAction
  subject?: string
  outcome: string
  detail?: string
  reason?: string | null
  now: Millis
}

export async function insertAudit(tx: Tx, entry: NewAudit): Promise<void> {
  const { actor, action, subject = null, outcome, detail = null, reason = null, now } = entry
  await tx.run(sql`
    INSERT INTO operator_audit (id, actor, action, subject, outcome, detail, reason, created_at)
    VALUES (${crypto.randomUUID()}, ${actor}, ${action}, ${subject}, ${outcome}, ${detail}, ${reason}, ${now})`)
}

export interface AuditFilter {
  action: string | null
  actor: string | null
  subject: string | null
  /** Only rows older than this one; null for all. */
  beforeSeq: number | null
}

/** Returns matching rows, newest first. A null member of the filter matches every row. */
export function listAudit(
  reader: Reader,
  { action, actor, subject, beforeSeq }: AuditFilter,
  limit: number,
): Promise<AuditRow[]> {
  const conditions: Sql[] = []
  if (action !== null) conditions.push(sql`action = ${action}`)
  if (actor !== null) conditions.push(sql`actor = ${actor}`)
  if (subject !== null) conditions.push(sql`subject = ${subject}`)
  if (beforeSeq !== null) conditions.push(sql`seq < ${beforeSeq}`)
  return reader.all<AuditRow>(sql`
    SELECT seq, id, actor, action, subject, outcome, detail, reason, created_at AS "createdAt"
    FROM operator_audit WHERE ${sqlAnd(conditions)} ORDER BY seq DESC LIMIT ${limit}`)
}
