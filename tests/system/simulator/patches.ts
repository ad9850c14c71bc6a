/** Faults that the simulator has to find when they are put back. Some of them were in the server once. */
import type { Patch } from './seams.ts'

export interface KnownFault {
  /** What is wrong. */
  what: string
  patches: readonly Patch[]
  /** What one of the invariants says. */
  found: RegExp
}

export const knownFaults: Readonly<Record<string, KnownFault>> = {
  'clock-ids': {
    what: 'each node draws its clock id by lot, so that two may have the same one',
    patches: [
      {
        path: 'src/platform/database/postgres-cluster.ts',
        find: 'this.#clockId = free?.id ?? this.#clockId',
        put: 'void free',
      },
    ],
    found: /has the clock id of|Record already exists/,
  },
  'torn-changes': {
    what: 'changes in a space, and the hash at their end, are read one after another',
    patches: [
      {
        path: 'src/features/data/spaces/space-reading.ts',
        find: '() => ctx.db.shortSnapshot(page))',
        put: '() => page(ctx.db))',
      },
    ],
    found: /the hash at/,
  },
  'space-turns': {
    what: 'two nodes may write in a space at once',
    patches: [
      {
        path: 'src/features/data/spaces/space-writing.ts',
        find: 'ctx.db.transactionOn(accountLock(did), (tx) =>',
        put: 'ctx.db.transactionOn(accountLock(`${did}${Math.random()}` as Did), (tx) =>',
      },
      {
        path: 'src/features/data/spaces/space-store.ts',
        find: 'WHERE id = ${before.id} AND rev = ${before.rev}`)',
        put: 'WHERE id = ${before.id}`)',
      },
    ],
    found: /follows|the hash|was told|answers 500/,
  },
  'unheld-blob': {
    what: 'a blob is removed although a record in a space refers to it',
    patches: [
      {
        path: 'src/features/data/blobs/blob-store.ts',
        find: 'AND unreferenced_at <= ${until} AND takedown_ref IS NULL AND NOT ${isReferenced()} AND NOT ${isHeldBySpace()}',
        put: 'AND unreferenced_at <= ${until} AND takedown_ref IS NULL AND NOT ${isReferenced()}',
      },
    ],
    found: /refers to|does not have|nothing stands against/,
  },
  'trusted-bytes': {
    what: 'an upload relies on an object that a removal may have taken away since',
    patches: [
      {
        path: 'src/features/data/blobs/blob-removal.ts',
        find: 'if (found.removedAt === null || found.taker !== lastTaker)',
        put: 'if (found.removedAt === undefined)',
      },
    ],
    found: /its bytes are not there|owns it/,
  },
  'unflushed-name': {
    what: 'the name of a blob is not flushed',
    patches: [
      {
        path: 'src/features/data/blobs/blob-folder.ts',
        find: 'await syncFolder(shard)',
        put: '',
      },
    ],
    found: /its bytes are not there/,
  },
  'late-reference': {
    what: 'a blob is removed although a record has come to refer to it since it was listed',
    patches: [
      {
        path: 'src/features/data/blobs/blob-store.ts',
        find: 'AND unreferenced_at <= ${until} AND takedown_ref IS NULL AND NOT ${isReferenced()} AND NOT',
        put: 'AND takedown_ref IS NULL AND NOT',
      },
    ],
    found: /refers to/,
  },
  'late-owner': {
    what: 'a file is removed although an account has come to own it since its row was deleted',
    patches: [
      {
        path: 'src/features/data/blobs/blob-removal.ts',
        find: 'if (!(await hasOwner(ctx.db, cid))) await blobStorage(ctx).remove(cid)\n}\n\n/**\n * Continue',
        put: 'await blobStorage(ctx).remove(cid)\n}\n\n/**\n * Continue',
      },
    ],
    found: /owns it/,
  },
  unmirrored: {
    what: 'an upload is acknowledged before the mirror has its copy',
    patches: [
      {
        path: 'src/features/data/blobs/blob-upload.ts',
        find: '  await mirrorAtOnce(ctx, blob)\n',
        put: '',
      },
    ],
    found: /was acknowledged|are not fetched/,
  },
  'vanishing-copy': {
    what: 'a copy is deleted from the mirror although an account has come to own the blob since it was listed',
    patches: [
      {
        path: 'src/features/data/blobs/mirror-sweep.ts',
        find: '        if (await ctx.db.transaction((tx) => hasOwner(tx, cid))) return\n',
        put: '',
      },
    ],
    found: /was acknowledged|are not fetched/,
  },
  'surviving-session': {
    what: 'an app password is revoked beside the sign-in with it',
    patches: [
      {
        path: 'src/features/access/sessions/app-passwords.ts',
        find: 'exchange.ctx.db.transaction(async (tx) => {\n    if (!(await endAppPassword(',
        put: 'exchange.ctx.db.transactionOn([], async (tx) => {\n    if (!(await endAppPassword(',
      },
    ],
    found: /has ended/,
  },
  'spent-retry': {
    what: 'a refresh token that is exchanged again at once ends its session',
    patches: [
      {
        path: 'src/features/access/sessions/session-life.ts',
        find: 'return isRetry ? session.currentToken : null',
        put: 'return isRetry ? null : null',
      },
    ],
    found: /may not extend|nothing stands against/,
  },
  floor: {
    what: 'the floor of the numbering rises past a transaction that runs but is younger than all that have ended',
    patches: [
      {
        path: 'src/features/data/firehose/sequencer.ts',
        find: `after({ lastId, xmin, xid }: Pick<Batch, 'lastId' | 'xmin' | 'xid'>): void {`,
        put: 'after({ lastId, xmin, xmax: xid }: any): void {',
      },
      {
        path: 'src/features/data/firehose/sequencer.ts',
        find: 'this.#mark ??= { id: Math.max(lastId, this.id), end: null }',
        put: 'this.#mark ??= { id: Math.max(lastId, this.id), end: xid }',
      },
    ],
    found: /events have no number|follows/,
  },
  fence: {
    what: 'a batch of numbers does not check the fence of the lease',
    patches: [
      {
        path: 'src/features/data/firehose/sequencer-store.ts',
        find: '${lease === null ? sql`SELECT 1` : heldLease(lease)}',
        put: '${sql`SELECT 1`}',
      },
    ],
    found: /without the lease/,
  },
  'lost-commit': {
    what: 'a COMMIT whose answer was lost counts as made',
    patches: [
      {
        path: 'src/platform/database/postgres-writer.ts',
        find: 'if (error instanceof CommitInterrupted && (await writer.wasCommitted(end))) return error.committed()',
        put: 'if (error instanceof CommitInterrupted) return error.committed()',
      },
    ],
    found: /was told|numbers an event/,
  },
  'repeated-commit': {
    what: 'a transaction whose COMMIT was interrupted runs again without a look whether it was made',
    patches: [
      {
        path: 'src/platform/database/postgres-writer.ts',
        find: 'if (error instanceof CommitInterrupted && (await writer.wasCommitted(end))) return error.committed()',
        put: '',
      },
    ],
    found: /Record already exists|already taken|numbers an event|was there already/,
  },
  'untrue-refusal': {
    what: 'a change of unknown outcome is refused as one that was not made',
    patches: [
      {
        path: 'src/platform/database/postgres-connection.ts',
        find: 'return unknownOutcome(cause)',
        put: 'return unreachable(cause)',
      },
    ],
    found: /was told that this was not done/,
  },
  'early-status': {
    what: 'whether an account is active is read before the transaction of a write, not in it',
    patches: [
      {
        path: 'src/features/identity/account-keys/account-keys.ts',
        find: 'const signer = await findSigner(tx, did, revalidation)',
        put: 'const signer = await findSigner(ctx.db, did, revalidation)',
      },
    ],
    found: /is not active|is deactivated|nothing stands against/,
  },
  'freed-name': {
    what: 'a handle is free as soon as the change to it has failed, although the directory may have taken it, or may yet',
    patches: [
      {
        path: 'src/features/identity/handles/name-claims.ts',
        find: 'isWithoutEffect(held, error, isSent) ? forgetName(ctx, held) : leaveName(ctx, held)',
        put: 'forgetName(ctx, held)',
      },
    ],
    found: /the directory says/,
  },
  'left-name': {
    what: 'an account does not get the handle that the directory has taken for it, if the change to it has failed',
    patches: [
      {
        path: 'src/features/identity/handles/name-claims.ts',
        find: 'if (state === null || claimedHandle(state) !== handle) return true',
        put: 'if (state !== undefined) return true',
      },
    ],
    found: /the directory says/,
  },
  'unheld-key': {
    what: 'an account signs commits while the directory may name its next key',
    patches: [
      {
        path: 'src/features/identity/repo-keys/key-rotation.ts',
        find: 'await holdSigning(ctx, tx, did)',
        put: '',
      },
    ],
    found: /does not verify/,
  },
  'unheld-commit': {
    what: 'a commit is signed for a reader in a space while the directory may name the next key of the account',
    patches: [
      {
        path: 'src/features/identity/account-keys/account-keys.ts',
        find: 'if (signer && signer.heldAt !== null) throw new SigningHeld()',
        put: '',
      },
    ],
    found: /the commit \w+ does not verify/,
  },
  'short-doubt': {
    what: 'what was sent to the directory without an answer is taken for lost at once',
    patches: [
      {
        path: 'src/features/identity/identity/submission.ts',
        find: 'export const doubtUntil = (sentAt: Millis): Millis => sentAt + DOUBT_MILLIS',
        put: 'export const doubtUntil = (sentAt: Millis): Millis => sentAt',
      },
    ],
    found: /the directory says/,
  },
  'hidden-outcome': {
    what: 'a look at the session that fails takes the place of the error that says that the outcome is unknown',
    patches: [
      {
        path: 'src/http/limiting.ts',
        find: 'if (!isStorageOutage(error)) await exchange.revalidate(exchange.ctx.db)',
        put: 'await exchange.revalidate(exchange.ctx.db)',
      },
    ],
    found: /was told that this was not done/,
  },
  'head-guard': {
    what: 'commits of a repository run beside each other, and replace whatever head there is',
    patches: [
      {
        path: 'src/features/data/repo/record-writing.ts',
        find: `  try {
    commit = await ctx.db.transactionOn(accountLock(did), apply)`,
        put: `  try {
    commit = await ctx.db.transactionOn([], apply)`,
      },
      {
        path: 'src/features/data/repo/repo-store.ts',
        find: `record_count = \${records}, counted_rev = NULL, node_count = \${nodes}, nodes_rev = \${rev}
    WHERE id = \${before.id} AND rev = \${before.rev}\`)
  requireUpdated(updated, before)`,
        put: `record_count = \${records}, counted_rev = NULL, node_count = \${nodes}, nodes_rev = \${rev}
    WHERE id = \${before.id}\`)
  requireUpdated(updated, before)`,
      },
    ],
    found: /follows|tree|builds on|answers 500/,
  },
  revisions: {
    what: 'a revision is the time of the clock, also if that has gone back',
    patches: [
      {
        path: 'src/features/data/repo/commit-writer.ts',
        find: '  nextTid(previous, ctx.clock.now() * 1000, clockIdOf(ctx))',
        put: '  nextTid(null, ctx.clock.now() * 1000, clockIdOf(ctx))',
      },
    ],
    found: /revision|Record already exists|More than one write/,
  },
  notifications: {
    what: 'the sequencer relies on notifications, which may be lost',
    patches: [
      {
        path: 'src/features/data/firehose/sequencer.ts',
        find: 'const poll = setInterval(wake, POLL_MILLIS)',
        put: 'const poll = setInterval(() => {}, POLL_MILLIS)',
      },
    ],
    found: /events have no number/,
  },
  'step-lease': {
    what: 'a node takes a step that another one is performing',
    patches: [
      {
        path: 'src/platform/running/step-store.ts',
        find: 'export const LEASE_MILLIS = 5 * MINUTE_MILLIS',
        put: 'export const LEASE_MILLIS = 900',
      },
    ],
    found: /twice, although nothing went wrong/,
  },
  'step-reclaim': {
    what: 'steps of a node that was killed are left until their lease ends',
    patches: [
      { path: 'src/app.ts', find: '    () => ctx.steps.reclaim(),\n', put: '' },
      { path: 'src/platform/running/steps.ts', find: '    await releaseSteps(db)\n', put: '' },
    ],
    found: /nobody has taken over|steps are not done/,
  },
  codes: {
    what: 'a code that was mailed can be used again',
    patches: [
      {
        path: 'src/features/identity/mails/mailed-codes.ts',
        find: '  await deleteMailedCodes(tx, known.did, purpose)\n',
        put: '',
      },
      {
        path: 'src/features/identity/mails/mails-feature.ts',
        find: `for (const purpose of ['reset_password', 'sign_in'] as const) await deleteMailedCodes(tx, did, purpose)`,
        put: '',
      },
    ],
    found: /used a code twice/,
  },
  'no-flush': {
    what: 'on SQLite, a write is acknowledged before the log is on the disk',
    patches: [
      {
        path: 'src/platform/database/wal.ts',
        find: "await flush((this.#descriptor ??= openSync(`${this.databasePath}-wal`, 'r+')))",
        put: "void flush((this.#descriptor ??= openSync(`${this.databasePath}-wal`, 'r+')))",
      },
    ],
    found: /was told|does not have any more/,
  },
  'lease-condition': {
    what: 'the lease is replaced whatever it is by then',
    patches: [
      {
        path: 'src/platform/network/bucket.ts',
        find: `tag === null ? { 'if-none-match': '*' } : { 'if-match': \`"\${tag}"\` }`,
        put: '{}',
      },
      {
        path: 'src/features/operations/backup/continuous-lease.ts',
        find: 'if (ttlMillis > 0 || isTakeover) await archive.requireConditions()',
        put: '',
      },
    ],
    found: /takes the lease of epoch/,
  },
  'segment-condition': {
    what: 'a segment replaces one that has its number',
    patches: [
      {
        path: 'src/platform/network/bucket.ts',
        find: `const tag = await this.#put(key, content, { 'if-none-match': '*' })`,
        put: 'const tag = await this.#put(key, content)',
      },
    ],
    found: /replaces segment/,
  },
  'old-copy': {
    what: 'a machine takes over with the copy that it has, although there are newer segments',
    patches: [
      {
        path: 'src/features/operations/backup/continuous-fence.ts',
        find: 'return found && Buffer.from(found).equals(content)',
        put: 'return found && true',
      },
    ],
    found: /was told|does not have any more|machines serve/,
  },
  'early-acknowledgement': {
    what: 'with sync, a write is acknowledged once it is in the spool',
    patches: [
      {
        path: 'src/features/operations/backup/continuous-gate.ts',
        find: 'await Promise.all([promise, commit.flushed])',
        put: 'await commit.flushed',
      },
    ],
    found: /was told|does not have any more|following|not there/,
  },
  unconfirmed: {
    what: 'a write that changes nothing is answered without a look at the lease',
    patches: [
      {
        path: 'src/features/operations/backup/continuous-gate.ts',
        find: 'if (!isOwn) void this.#confirm(passing)',
        put: 'if (!isOwn) { passing.isConfirmed = true; this.letPass() }',
      },
    ],
    found: /acknowledges a write that was asked for after/,
  },
  unspooled: {
    what: 'a restarted server never looks for segments that were sent before they were in the spool',
    patches: [
      {
        path: 'src/features/operations/backup/continuous-joining.ts',
        find: 'const found = await segmentAt(later.state.next)',
        put: 'const found = null as Segment | null',
      },
      {
        path: 'src/features/operations/backup/continuous-sending.ts',
        find: 'error instanceof ChainTaken && (await this.#rejoin())',
        put: '(false as boolean)',
      },
    ],
    found: /makes another segment/,
  },
  'lost-epoch': {
    what: 'segments that are made before the lease was seen again are of no epoch',
    patches: [
      {
        path: 'src/features/operations/backup/continuous-sending.ts',
        find: 'epoch: this.#lease?.record.epoch ?? state.epoch ?? 0',
        put: 'epoch: this.#lease?.record.epoch ?? 0',
      },
    ],
    found: /continues the chain of epoch/,
  },
  leaving: {
    what: 'a node that stops still looks for its row and its marks, which it or others have just deleted',
    patches: [{ path: 'src/platform/database/postgres-history.ts', find: 'this.#hasLeft = true', put: '' }],
    found: /misses what the database has/,
  },
  'skipped-frames': {
    what: 'events that arrive while the tail reads the log are taken for ones that were sent',
    patches: [
      {
        path: 'src/features/data/firehose/tail.ts',
        find: '      const events = await eventsAfter(this.#ctx.db, this.#head)\n',
        put: '      const events = await eventsAfter(this.#ctx.db, starts ? this.#head : await headSeq(this.#ctx.db) - 1)\n',
      },
    ],
    found: /leaves out/,
  },
  'spent-numbers': {
    what: 'who takes over under async numbers events from where its copy ends',
    patches: [{ path: 'src/features/operations/backup/restoring.ts', find: 'await raiseSeq(tx, seq)', put: '' }],
    found: /another event|in the future|after \d+ to the relay/,
  },
  'old-revisions': {
    what: 'accounts that are announced again are not signed again',
    patches: [
      {
        path: 'src/features/operations/backup/restoring.ts',
        find: '[await resignHead(ctx, tx, did, key)]',
        put: '[]',
      },
    ],
    found: /sends the relay/,
  },
  'short-lag': {
    what: 'with async, a commit that is in the spool counts as sent',
    patches: [
      {
        path: 'src/features/operations/backup/continuous-sending.ts',
        find: '[this.#spool.waiting[0]?.since, this.#unsealed[0],',
        put: '[this.#unsealed[0],',
      },
    ],
    found: /was told|not there/,
  },
  'own-proofs': {
    what: 'each node remembers the proofs of apps by itself',
    patches: [
      {
        path: 'src/features/access/tokens/proofs.ts',
        find: 'return shared === null || (await shared.use(outcome.jkt, outcome.jti))',
        put: 'return shared === null || outcome.ok',
      },
    ],
    found: /uses a proof twice/,
  },
  'lost-answer': {
    what: 'an app that never got the answer has lost its session',
    patches: [
      {
        path: 'src/features/access/oauth/grants.ts',
        find: "return hash === previousHash && inTime ? 'retry' : 'reuse'",
        put: "return 'reuse'",
      },
    ],
    found: /may not extend|nothing stands against/,
  },
  'decided-twice': {
    what: 'a request of an app can be allowed at two nodes at once',
    patches: [
      {
        path: 'src/features/access/oauth/authorization-requests.ts',
        find: 'const pending = await takeRequest(tx, idHash, now)',
        put: 'const pending = await findRequest(tx, idHash, now)',
      },
    ],
    found: /is decided twice/,
  },
  'kept-session': {
    what: 'a token that is revoked leaves the session as it is',
    patches: [
      {
        path: 'src/features/access/oauth/client-routes.ts',
        find: 'if (session?.clientId === client.clientId && session.jkt === jkt) await deleteOAuthSession(tx, session.id)',
        put: 'void session',
      },
    ],
    found: /has ended/,
  },
}
