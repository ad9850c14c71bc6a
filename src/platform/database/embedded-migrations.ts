/** The migrations, embedded in the binary. A new migration is a new line; a number is never reused or changed. */
import server from '../../../migrations/0001-server.sql' with { type: 'text' }
import repo from '../../../migrations/0002-repo.sql' with { type: 'text' }
import accounts from '../../../migrations/0003-accounts.sql' with { type: 'text' }
import firehose from '../../../migrations/0004-firehose.sql' with { type: 'text' }
import unnumberedEvents from '../../../migrations/0118-unnumbered-events.sql' with { type: 'text' }
import unnumberedEventsPostgres from '../../../migrations/0118-unnumbered-events.postgres.sql' with { type: 'text' }
import blobs from '../../../migrations/0005-blobs.sql' with { type: 'text' }
import labels from '../../../migrations/0008-labels.sql' with { type: 'text' }
import operators from '../../../migrations/0009-operators.sql' with { type: 'text' }
import oauth from '../../../migrations/0010-oauth.sql' with { type: 'text' }
import plcDirectory from '../../../migrations/0020-plc-directory.sql' with { type: 'text' }
import identity from '../../../migrations/0021-identity.sql' with { type: 'text' }
import signup from '../../../migrations/0022-signup.sql' with { type: 'text' }
import publishedLexicons from '../../../migrations/0023-published-lexicons.sql' with { type: 'text' }
import claimCodes from '../../../migrations/0031-claim-codes.sql' with { type: 'text' }
import mailedCodes from '../../../migrations/0050-mailed-codes.sql' with { type: 'text' }
import preferences from '../../../migrations/0051-preferences.sql' with { type: 'text' }
import eventFrames from '../../../migrations/0052-event-frames.sql' with { type: 'text' }
import nodeRevisions from '../../../migrations/0053-node-revisions.sql' with { type: 'text' }
import takedownCount from '../../../migrations/0054-takedown-count.sql' with { type: 'text' }
import framings from '../../../migrations/0055-framings.sql' with { type: 'text' }
import takedowns from '../../../migrations/0056-takedowns.sql' with { type: 'text' }
import eventFramesPostgres from '../../../migrations/0052-event-frames.postgres.sql' with { type: 'text' }
import framingsBackfilledPostgres from '../../../migrations/0073-framings-backfilled.postgres.sql' with { type: 'text' }
import framingsBackfilled from '../../../migrations/0073-framings-backfilled.sql' with { type: 'text' }
import stagedRepos from '../../../migrations/0072-staged-repos.sql' with { type: 'text' }
import refreshRetries from '../../../migrations/0060-refresh-retries.sql' with { type: 'text' }
import clockSeen from '../../../migrations/0063-clock-seen.sql' with { type: 'text' }
import nameClaims from '../../../migrations/0064-name-claims.sql' with { type: 'text' }
import origins from '../../../migrations/0070-origins.sql' with { type: 'text' }
import knownPlaces from '../../../migrations/0074-known-places.sql' with { type: 'text' }
import steps from '../../../migrations/0077-steps.sql' with { type: 'text' }
import ceremonies from '../../../migrations/0081-ceremonies.sql' with { type: 'text' }
import wallets from '../../../migrations/0080-wallets.sql' with { type: 'text' }
import escrow from '../../../migrations/0084-escrow.sql' with { type: 'text' }
import furtherHandles from '../../../migrations/0082-further-handles.sql' with { type: 'text' }
import sessionMeans from '../../../migrations/0088-session-means.sql' with { type: 'text' }
import transfers from '../../../migrations/0085-transfers.sql' with { type: 'text' }
import stagedKeys from '../../../migrations/0086-staged-keys.sql' with { type: 'text' }
import agents from '../../../migrations/0100-agents.sql' with { type: 'text' }
import childAccounts from '../../../migrations/0104-child-accounts.sql' with { type: 'text' }
import agentClaims from '../../../migrations/0101-agent-claims.sql' with { type: 'text' }
import walletConsents from '../../../migrations/0083-wallet-consents.sql' with { type: 'text' }
import reservedKeyBinding from '../../../migrations/0092-reserved-key-binding.sql' with { type: 'text' }
import kekGeneration from '../../../migrations/0091-kek-generation.sql' with { type: 'text' }
import browserSignIns from '../../../migrations/0087-browser-sign-ins.sql' with { type: 'text' }
import hostingChanges from '../../../migrations/0093-hosting-changes.sql' with { type: 'text' }
import pushRegistrations from '../../../migrations/0109-push-registrations.sql' with { type: 'text' }
import holders from '../../../migrations/0120-holders.sql' with { type: 'text' }
import sweepReports from '../../../migrations/0121-sweep-reports.sql' with { type: 'text' }
import clockIds from '../../../migrations/0127-clock-ids.sql' with { type: 'text' }
import knownWallets from '../../../migrations/0139-known-wallets.sql' with { type: 'text' }
import databaseHistory from '../../../migrations/0148-database-history.sql' with { type: 'text' }
import sharedMemory from '../../../migrations/0122-shared-memory.sql' with { type: 'text' }
import sharedMemoryPostgres from '../../../migrations/0122-shared-memory.postgres.sql' with { type: 'text' }
import collectedReleases from '../../../migrations/0145-collected-releases.sql' with { type: 'text' }
import formerAddresses from '../../../migrations/0146-former-addresses.sql' with { type: 'text' }
import privateReads from '../../../migrations/0144-private-reads.sql' with { type: 'text' }
import lanes from '../../../migrations/0123-lanes.sql' with { type: 'text' }
import documentSizes from '../../../migrations/0133-document-sizes.sql' with { type: 'text' }
import stepOrder from '../../../migrations/0110-step-order.sql' with { type: 'text' }
import unansweredSubmissions from '../../../migrations/0106-unanswered-submissions.sql' with { type: 'text' }
import formerSubjects from '../../../migrations/0112-former-subjects.sql' with { type: 'text' }
import nodes from '../../../migrations/0113-nodes.sql' with { type: 'text' }
import senderKeys from '../../../migrations/0108-sender-keys.sql' with { type: 'text' }
import removalTombstones from '../../../migrations/0116-removal-tombstones.sql' with { type: 'text' }
import tableSettings from '../../../migrations/0115-table-settings.sql' with { type: 'text' }
import tableSettingsPostgres from '../../../migrations/0115-table-settings.postgres.sql' with { type: 'text' }
import commitMarks from '../../../migrations/0114-commit-marks.sql' with { type: 'text' }
import agentNames from '../../../migrations/0142-agent-names.sql' with { type: 'text' }
import devicePrograms from '../../../migrations/0143-device-programs.sql' with { type: 'text' }
import type { Migration } from './migrations.ts'

const migration = (number: number, name: string, text: string, postgres?: string): Migration => ({
  number,
  name,
  text,
  postgres,
})

export const migrations: readonly Migration[] = [
  migration(1, 'server', server),
  migration(2, 'repo', repo),
  migration(3, 'accounts', accounts),
  migration(4, 'firehose', firehose),
  migration(118, 'unnumbered-events', unnumberedEvents, unnumberedEventsPostgres),
  migration(5, 'blobs', blobs),
  migration(8, 'labels', labels),
  migration(9, 'operators', operators),
  migration(10, 'oauth', oauth),
  migration(20, 'plc-directory', plcDirectory),
  migration(21, 'identity', identity),
  migration(22, 'signup', signup),
  migration(23, 'published-lexicons', publishedLexicons),
  migration(31, 'claim-codes', claimCodes),
  migration(50, 'mailed-codes', mailedCodes),
  migration(51, 'preferences', preferences),
  migration(52, 'event-frames', eventFrames, eventFramesPostgres),
  migration(53, 'node-revisions', nodeRevisions),
  migration(54, 'takedown-count', takedownCount),
  migration(55, 'framings', framings),
  migration(56, 'takedowns', takedowns),
  migration(60, 'refresh-retries', refreshRetries),
  migration(72, 'staged-repos', stagedRepos),
  migration(73, 'framings-backfilled', framingsBackfilled, framingsBackfilledPostgres),
  migration(63, 'clock-seen', clockSeen),
  migration(64, 'name-claims', nameClaims),
  migration(70, 'origins', origins),
  migration(74, 'known-places', knownPlaces),
  migration(77, 'steps', steps),
  migration(80, 'wallets', wallets),
  migration(81, 'ceremonies', ceremonies),
  migration(84, 'escrow', escrow),
  migration(82, 'further-handles', furtherHandles),
  migration(88, 'session-means', sessionMeans),
  migration(86, 'staged-keys', stagedKeys),
  migration(100, 'agents', agents),
  migration(101, 'agent-claims', agentClaims),
  migration(104, 'child-accounts', childAccounts),
  migration(83, 'wallet-consents', walletConsents),
  migration(85, 'transfers', transfers),
  migration(92, 'reserved-key-binding', reservedKeyBinding),
  migration(93, 'hosting-changes', hostingChanges),
  migration(91, 'kek-generation', kekGeneration),
  migration(87, 'browser-sign-ins', browserSignIns),
  migration(106, 'unanswered-submissions', unansweredSubmissions),
  migration(112, 'former-subjects', formerSubjects),
  migration(113, 'nodes', nodes),
  migration(108, 'sender-keys', senderKeys),
  migration(109, 'push-registrations', pushRegistrations),
  migration(110, 'step-order', stepOrder),
  migration(120, 'holders', holders),
  migration(116, 'removal-tombstones', removalTombstones),
  migration(114, 'commit-marks', commitMarks),
  migration(115, 'table-settings', tableSettings, tableSettingsPostgres),
  migration(121, 'sweep-reports', sweepReports),
  migration(122, 'shared-memory', sharedMemory, sharedMemoryPostgres),
  migration(123, 'lanes', lanes),
  migration(127, 'clock-ids', clockIds),
  migration(133, 'document-sizes', documentSizes),
  migration(142, 'agent-names', agentNames),
  migration(143, 'device-programs', devicePrograms),
  migration(139, 'known-wallets', knownWallets),
  migration(144, 'private-reads', privateReads),
  migration(145, 'collected-releases', collectedReleases),
  migration(146, 'former-addresses', formerAddresses),
  migration(148, 'database-history', databaseHistory),
]
