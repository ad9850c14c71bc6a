/** The tables that tests look into, with the columns that they name. What the tables are for is in `migrations/`. */
export interface Tables {
  integrity_finding: { did: string; fault: string; found_at: number; seen_at: number }
  blob_fault: { cid: string; fault: string; found_at: number }
  signup_place: { network: string; at: number }
  account: {
    did: string
    handle: string | null
    email: string | null
    email_confirmed_at: number | null
    password_hash: string | null
    signing_key: string
    signing_key_wrapped: string
    created_at: number
    deactivated_at: number | null
    delete_after: number | null
    takedown_ref: string | null
    signing_held_at: number | null
  }
  account_event: { did: string; id: string; at: number; event: string; by_operator: number; times: number }
  account_flag: {
    labeler: string
    did: string
    val: string
    labelled_at: number
    expires_at: number | null
  }
  agent_claim: { id: string; registration_id: string }
  agent_event: { registration_id: string; type: string; did: string | null; detail: string | null }
  agent_registration: {
    id: string
    did: string | null
    type: string
    issuer: string | null
    subject: string | null
    parent_did: string | null
    scopes: string
    status: string
    created_at: number
    updated_at: number
  }
  app_password: { did: string }
  archive_schedule: { did: string; every: string; due_at: number }
  blob: {
    did: string
    cid: string
    mime_type: string
    size: number
    uploaded_at: number
    unreferenced_at: number | null
  }
  blob_reference: { did: string; record: string; cid: string }
  blob_removal: {
    cid: string
    unowned_at: number
    taken_at: number | null
    taker: string | null
    removed_at: number | null
  }
  case_decision: { did: string }
  ceremony: {
    id: string
    handle: string
    email: string
    tier: string
    invite_code: string
    created_at: number
    did: string | null
  }
  certificate: { names: string; wrapped: string; issued_at: number; renew_at: number; ask_at: number }
  certificate_order: { names: string; url: string | null; fault: string | null }
  challenge_record: { names: string }
  child_account: { did: string; parent_did: string; registration_id: string; genesis: string; created_at: number }
  clock_seen: { seen_at: number | null }
  device: { owner: string; revoked_at: number | null }
  did_document: { did: string; document: string }
  delegation: {
    id: string
    did: string
    delegate_did: string | null
    scope: string
    status: string
    invited_at: number
  }
  escrow_audit: { did: string; event: string; detail: string | null }
  escrow_share: { did: string; share_wrapped: string; requested_at: number | null }
  factor_failure: { did: string; until: number }
  factor_recovery_code: { did: string }
  further_handle: { did: string }
  kek_generation: { generation: number }
  known_place: { did: string }
  known_wallet: Record<never, never>
  lane: { name: string; holder: string; turn: string; until: number }
  large_record: { repo_id: number; path: string; value: Uint8Array }
  mailed_code: { did: string; requested_at: number }
  moderation_case: { did: string }
  move_in: { did: string; session_wrapped: string | null; stage: string }
  move_plan: { did: string }
  name_claim: {
    handle: string
    did: string
    attempt: string | null
    held_until: number
    attempt_by: string | null
    is_further: number
  }
  oauth_client: { client_id: string; document: string; fetched_at: number }
  oauth_code: { code_hash: string }
  oauth_device: { token_hash: string; expires_at: number }
  oauth_device_account: {
    token_hash: string
    did: string
    signed_in_at: number
    passed_factor: string | null
    used_at: number | null
    remembered: number | null
  }
  oauth_session: {
    id: string
    did: string
    client_id: string
    scope: string
    scope_is_fixed: number
    jkt: string
    code_hash: string
    created_at: number
    refreshed_at: number
    expires_at: number
    idle_expires_at: number
  }
  node: {
    id: string
    name: string
    version: string
    started_at: number
    heartbeat_at: number
    clock_ahead: number | null
    beats: number
  }
  oauth_replay: { kind: string; value: string }
  oauth_request: { id_hash: string; client_id: string; content: string; expires_at: number }
  operator_audit: Record<never, never>
  operator_role: { role: string }
  operator_session: Record<never, never>
  operator_nonce: { device_id: string }
  plc_operation: { did: string }
  preference: { did: string }
  published_lexicon: { nsid: string; document: string; fetched_at: number }
  push_registration: {
    owner: string
    device_id: string
    public_key: string
    token: string
    topic: string
    is_ping: number
    handle: string | null
    pushed_at: number | null
    registered_at: number
  }
  push_sender_key: { kid: number; state: string; secret_wrapped: string | null }
  record: {
    repo_id: number
    path: string
    cid: Uint8Array
    rev: string
    takedown_ref: string | null
    subject: string | null
    value: Uint8Array
    framing: Uint8Array | null
    unlisted: number | null
  }
  recovery_code: { did: string; issued_at: number }
  repo: {
    id: number
    did: string | null
    rev: string
    head: Uint8Array
    data: Uint8Array
    commit_block: Uint8Array
    fresh: Uint8Array
    staged_until: number | null
    record_count: number | null
    counted_rev: string | null
    node_count: number | null
    nodes_rev: string | null
    has_large: number
  }
  repo_node: { repo_id: number; cid: Uint8Array; rev: string; bytes: Uint8Array; framing: Uint8Array | null }
  repo_seq: { seq: number; did: string; event_type: string; sequenced_at: number; frame: Uint8Array }
  repo_seq_past: { spent_through: number; pruned_through: number; listed_through: number }
  repo_seq_run: { run: number; did: string; seq: number }
  reserved_signing_key: { signing_key: string; did: string | null }
  schema_migration: { name: string }
  server_secret: { name: string; wrapped: string }
  session: {
    id: string
    did: string
    current_token: string
    expires_at: number
    opened_at: number | null
    opened_with: string | null
    by_password: number
  }
  space_blob_reference: { did: string; cid: string; space: string; record: string; rev: string }
  space_op: {
    space_repo_id: number
    rev: string
    idx: number
    path: string
    cid: Uint8Array | null
    prev: Uint8Array | null
    prev_rev: string | null
  }
  space_place: { id: number; did: string | null; space: string }
  space_record: { space_repo_id: number; path: string; cid: Uint8Array; rev: string; value: Uint8Array }
  space_repo: {
    id: number
    did: string | null
    space: string
    authority: string
    type: string
    rev: string
    record_count: number
    state: Uint8Array
  }
  staged_key: Record<never, never>
  step: {
    id: string
    kind: string
    key: string
    did: string | null
    share: string
    payload_wrapped: string
    due_at: number | null
    taken_until: number | null
    tries: number
    last_error: string | null
    taken_by: string | null
  }
  passkey: { did: string; credential_id: string; rp_id: string }
  transfer: {
    id: string
    did: string
    code: string | null
    status: string
    created_at: number
    expires_at: number
  }
  trusted_browser: { did: string }
  waitlist_entry: { email: string; handle: string | null; created_at: number }
  wallet_consent: {
    request_id: string
    request_hash: string
    user_code: string
    client_id: string
    requested_scope: string
    login_hint: string | null
    ip: string
    status: string
    granted_scope: string | null
    created_at: number
    expires_at: number
  }
  wallet_consent_event: { action: string; detail: string }
  wallet_session: { token_hash: string; did: string; by_password: number; expires_at: number; opened_at: number }
  web_document: { did: string; document: string; hosted_since: number | null }
  used_proof: { used_at: number }
}

export type Table = keyof Tables

/** The column that says in which order rows came, for tables where tests ask. */
export const cameBy: { readonly [Of in Table]?: string } = {
  agent_claim: 'created_at',
  agent_event: 'seq',
  escrow_audit: 'seq',
  push_registration: 'registered_at',
  repo_seq: 'seq',
  session: 'opened_at',
  step: 'id',
  wallet_consent_event: 'seq',
}
