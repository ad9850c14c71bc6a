/** How tests are written, held by rules. Each fault that is found says what to do about it. */
import { expect, test } from 'bun:test'
import { testSources, testsOf, usesDatabase } from './test-files.ts'

const cases = testSources.filter(({ path }) => path.endsWith('.test.ts')).flatMap(testsOf)

test('the reader of tests sees those in groups and tables, and the expectations of helpers', () => {
  const inFile = (path: string) => cases.filter((each) => each.path === path)
  expect(inFile('tests/features/firehose/crowds.test.ts').map(({ name }) => name)).toContain(
    '%s has ten, and gets one again when one of its clients leaves',
  )
  const delegating = inFile('tests/features/copying/faults.test.ts')
  expect(delegating.length).toBeGreaterThan(10)
  expect(delegating.filter(({ expects }) => !expects)).toEqual([])
})

test('every test has an expectation', () => {
  const faults = cases.filter(({ expects }) => !expects)
  expect(
    faults.map(
      ({ path, line, name }) =>
        `${path}:${line} "${name}" expects nothing. Say what holds at its end with expect; waiting for it is not a check`,
    ),
  ).toEqual([])
})

/**
 * Files that still read or write tables themselves, or hand the database to a function of a feature: those about the
 * database, and those about what only such a function does. Take a file off the list once it does neither; none joins
 * it.
 */
const databaseUsers: ReadonlySet<string> = new Set([
  'tests/features/account-archives/archive-turns.test.ts',
  'tests/features/accounts/email.test.ts',
  'tests/features/accounts/lifecycle.test.ts',
  'tests/features/accounts/password-reset.test.ts',
  'tests/features/accounts/purge.test.ts',
  'tests/features/accounts/wallet-deletion.test.ts',
  'tests/features/admin/account-state.test.ts',
  'tests/features/admin/takedown-at-work.test.ts',
  'tests/features/agents/claim-page.test.ts',
  'tests/features/agents/owner.test.ts',
  'tests/features/auth/hostile-proofs.test.ts',
  'tests/features/auth/owner.test.ts',
  'tests/features/auth/scoped-app-passwords.test.ts',
  'tests/features/auth/service-auth-vector.test.ts',
  'tests/features/auth/sovereign-sessions.test.ts',
  'tests/features/backup/backup.test.ts',
  'tests/features/backup/database-restored.test.ts',
  'tests/features/backup/postgres-backup.test.ts',
  'tests/features/blobs/blob-references.test.ts',
  'tests/features/blobs/breaking.test.ts',
  'tests/features/blobs/collecting.test.ts',
  'tests/features/blobs/reading.test.ts',
  'tests/features/blobs/reconciling.test.ts',
  'tests/features/blobs/uploading.test.ts',
  'tests/features/ceremony/keys-and-login.test.ts',
  'tests/features/copying/copying.test.ts',
  'tests/features/copying/faults.test.ts',
  'tests/features/copying/pages.test.ts',
  'tests/features/data-browser/data-browser.test.ts',
  'tests/features/blobs/listing-costs.test.ts',
  'tests/features/doctor/numbering.test.ts',
  'tests/features/escrow/deposit.test.ts',
  'tests/features/escrow/operating-recovery.test.ts',
  'tests/features/escrow/recovery-codes.test.ts',
  'tests/features/firehose/crowds.test.ts',
  'tests/features/firehose/event-list.test.ts',
  'tests/features/firehose/event-log.test.ts',
  'tests/features/firehose/group-numbers.test.ts',
  'tests/features/firehose/numbering.test.ts',
  'tests/features/identity/further-handles.test.ts',
  'tests/features/identity/plc-operations.test.ts',
  'tests/features/integrity/integrity.test.ts',
  'tests/features/iroh/identity.test.ts',
  'tests/features/labels/labeler-watch.test.ts',
  'tests/features/languages/mail-kinds.test.ts',
  'tests/features/notifications/queueing.test.ts',
  'tests/features/notifications/registrations.test.ts',
  'tests/features/notifications/relay-trouble.test.ts',
  'tests/features/notifications/sender-keys.test.ts',
  'tests/features/oauth/wallet-consent-proofs.test.ts',
  'tests/features/oauth/wallet-consent-traces.test.ts',
  'tests/features/proxy/read-after-write.test.ts',
  'tests/features/quotas/quotas.test.ts',
  'tests/features/reference-import/faults.test.ts',
  'tests/features/repo-keys/rotation-vector.test.ts',
  'tests/features/repo/bad-input.test.ts',
  'tests/features/repo/commits.test.ts',
  'tests/features/repo/framed-blocks.test.ts',
  'tests/features/repo/fresh-nodes.test.ts',
  'tests/features/repo/large-records-before.test.ts',
  'tests/features/repo/record-room.test.ts',
  'tests/features/repo/unlisted-records.test.ts',
  'tests/features/repo/records.test.ts',
  'tests/features/repo/repository-size.test.ts',
  'tests/features/repair/repair-costs.test.ts',
  'tests/features/repo/second-opinion.test.ts',
  'tests/features/signup/create-account.test.ts',
  'tests/features/sync/import-repo.test.ts',
  'tests/features/sync/many-exports.test.ts',
  'tests/features/sync/sync-reads.test.ts',
  'tests/platform/database/bounded-tables.test.ts',
  'tests/features/cases/case-costs.test.ts',
  'tests/features/spaces/space-attacks.test.ts',
  'tests/features/spaces/space-costs.test.ts',
  'tests/features/integrity/damage.test.ts',
  'tests/features/spaces/space-leaks.test.ts',
  'tests/features/spaces/space-read-costs.test.ts',
  'tests/platform/database/cluster.test.ts',
  'tests/platform/database/commit-gate.test.ts',
  'tests/platform/database/concurrency.test.ts',
  'tests/platform/database/copy-database.test.ts',
  'tests/platform/database/faults.test.ts',
  'tests/platform/database/history.test.ts',
  'tests/platform/database/checkpoints.test.ts',
  'tests/platform/database/log-follower.test.ts',
  'tests/platform/database/migration-files.test.ts',
  'tests/features/waitlist/listed-address.test.ts',
  'tests/platform/database/nodes.test.ts',
  'tests/platform/database/periodic-statements.test.ts',
  'tests/platform/database/postgres.test.ts',
  'tests/platform/database/reader-database.test.ts',
  'tests/platform/database/rolling-upgrade.test.ts',
  'tests/platform/database/sqlite.test.ts',
  'tests/platform/files/data-directory.test.ts',
  'tests/platform/secrets/master-key.test.ts',
  'tests/platform/steps/steps.test.ts',
  'tests/support/clients/events.ts',
  'tests/support/clients/phone.ts',
  'tests/support/clients/registered-agent.ts',
  'tests/support/clients/seed-account.ts',
  'tests/support/clients/session-token.ts',
  'tests/support/clients/wallet-consent.ts',
  'tests/support/clients/wallet.ts',
  'tests/support/pages-read.ts',
  'tests/support/servers/postgres.ts',
  'tests/support/servers/reference-folder.ts',
  'tests/support/verbs.ts',
  'tests/system/durability/continuous-kill.test.ts',
  'tests/system/cluster/blobs-of-nodes.test.ts',
  'tests/system/cluster/endpoint-of-nodes.test.ts',
  'tests/system/cluster/keyed-locks.test.ts',
  'tests/system/cluster/status-of-nodes.test.ts',
  'tests/system/cluster/steps-of-nodes.test.ts',
  'tests/system/cluster/sweeps-of-nodes.test.ts',
  'tests/system/commands/repair.test.ts',
  'tests/system/durability/child-kill.test.ts',
  'tests/system/durability/filler.ts',
  'tests/system/durability/full-database-disk.test.ts',
  'tests/system/durability/full-disk.test.ts',
])

test('tests leave the database to the verbs of the server: rows, count, plant, damage, lose, age and hide', () => {
  const users = testSources
    // The simulator is a database itself.
    .filter((source) => /^tests\/(?!architecture\/|system\/simulator\/)/.test(source.path) && usesDatabase(source))
    .map(({ path }) => path)
  expect(
    users
      .filter((path) => !databaseUsers.has(path))
      .map((path) => `${path} uses the database. Ask over the wire, or use a verb of tests/support/verbs.ts`),
  ).toEqual([])
  expect(
    [...databaseUsers]
      .filter((path) => !users.includes(path))
      .map((path) => `${path} uses the database no more. Take it off the list`),
  ).toEqual([])
})

/** Files that let real time pass, and why nothing else would do. */
const sleepers: Readonly<Record<string, string>> = {
  'src/platform/running/stream-places.test.ts': 'the patience with a slow client is a real time-out, of 0 ms here',
  'tests/features/proxy/slow-requests.test.ts': 'a service that is slow for everybody is so by real time',
  'tests/features/firehose/crawlers.test.ts': 'the window between two requests is real, and nothing happens in it',
  'tests/features/repo-keys/rotation-storm.test.ts': 'kills come at random moments',
  'tests/platform/database/sqlite.test.ts': 'a transaction that waits for time is what is refused',
  'tests/platform/files/nameless-files.test.ts': 'a reader is idle by real time',
  'tests/support/clients/http.ts': 'the longest that a raw request waits for a server that keeps the connection',
  'tests/support/faults/lying-bucket.ts': 'the bucket is slow by real time',
  'tests/support/servers/postgres.ts': 'PostgreSQL is asked again until it has started',
  'tests/support/until.ts': 'the one that waits for all the others, within bounds',
  'tests/system/durability/database-restart.test.ts': 'a client that is told to come back does not come at once',
  'tests/system/durability/storm.ts': 'a client that is told to come back does not come at once',
  'tests/system/commands/repair.test.ts': 'kills come at moments of the repair',
  'tests/system/simulator/timers.ts': 'it stands in for timers',
  'tests/system/release/upgrade.test.ts': 'kills come at random moments',
}

test('no test sleeps: it waits with until, lets others have their turns, or advances the clock', () => {
  const found = testSources.filter(({ path, text }) => !path.startsWith('tests/architecture/') && sleeps(text))
  expect(
    found
      .filter(({ path }) => !(path in sleepers))
      .map(({ path }) => `${path} sleeps, or waits in a loop of its own. Use tests/support/until.ts or pds.clock`),
  ).toEqual([])
  expect(
    Object.keys(sleepers)
      .filter((path) => !found.some((source) => source.path === path))
      .map((path) => `${path} does not sleep any more. Take it off the list`),
  ).toEqual([])
})

const sleeps = (text: string): boolean => /\bBun\.sleep\(|\bsetTimeout\(|\bwhile \(.*\bsetImmediate\b/.test(text)

test('no test waits by rejects or resolves, whose event loop sleeps in turns that nothing else wakes', () => {
  const waits = testSources.filter(({ text }) => /\)\s*\.(?:rejects|resolves)\./.test(text))
  expect(waits.map(({ path }) => `${path}: await the promise; tests/support/thrown.ts has its rejection`)).toEqual([])
})

test('the name of a test says something without that of its group', () => {
  const faults = cases.filter(({ name }) => /^(?:and|but|or|nor) /.test(name) || !/%|\$|\S+ \S+ \S/.test(name))
  expect(
    faults.map(
      ({ path, line, name }) => `${path}:${line} "${name}" is no sentence. Name what the test is about, and what holds`,
    ),
  ).toEqual([])
})
