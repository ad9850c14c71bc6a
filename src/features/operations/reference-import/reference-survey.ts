/** Counts what a reference folder holds, and finds what stands in the way, before anything is written. */
import { existsSync } from 'node:fs'
import { DAY_MILLIS } from '../../../base/durations.ts'
import { concurrently } from '../../../base/concurrently.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { parseDid, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { countEventsOf, eventsFrom, firstSeqSinceOf } from './reference-events.ts'
import { isFaultOfAccount, verifyFormerBlobs, verifyFormerRepo } from './former-repo.ts'
import {
  accountsOf,
  appPasswordsOf,
  appSessionsOf,
  browsersIn,
  invitesOf,
  leftBehind,
  sessionsOf,
  type FormerAccount,
} from './reference-accounts.ts'
import { ReferenceActor } from './reference-actor.ts'
import { formerBlobs } from './reference-blobs.ts'
import { variable } from './reference-env.ts'
import { reservedKeysOf, type ReferenceFolder } from './reference-folder.ts'
import type { Belongings } from './account-arrival.ts'

/** How far back the old server sends events to subscribers, in milliseconds, unless its environment says otherwise. */
const BACKFILL_MILLIS = DAY_MILLIS
/** Accounts that are read at a time. */
export const ACCOUNTS_AT_ONCE = 4

/** The name of the old server, and which of its secrets are known. */
export interface Terms {
  serverDid: string
  /** The key of its session tokens; null if those cannot be exchanged here. */
  sessionKey: Uint8Array | null
  /** Why its session tokens cannot be exchanged here. */
  sessionFault: string | null
  /** The secret of its rotation key; null if it is not known. */
  rotationKey: Uint8Array | null
  /** Events from this instant on are taken over. */
  eventsSince: Millis
}

/** Throws `OperatorError` if the old server cannot move into one with this configuration. */
export function termsOf({ env, path }: Pick<ReferenceFolder, 'env' | 'path'>, config: Config, now: Millis): Terms {
  const hostname = variable(env, 'PDS_HOSTNAME')
  const { hostname: ours } = new URL(config.publicUrl)
  if (hostname !== null && hostname !== ours)
    throw new OperatorError(
      `${path} is of ${hostname}, and public_url names ${ours}: identities name the old address, so the server keeps it. Set public_url, or name another folder`,
    )
  if (variable(env, 'PDS_ENTRYWAY_URL') !== null)
    throw new OperatorError(
      'the old server is behind an entryway (PDS_ENTRYWAY_URL), which holds the passwords: it cannot move',
    )
  const serverDid = variable(env, 'PDS_SERVICE_DID') ?? (hostname === null ? config.serverDid : `did:web:${hostname}`)
  const secret = variable(env, 'PDS_JWT_SECRET')
  const sessionFault =
    secret === null
      ? 'PDS_JWT_SECRET is not known: name the environment with --env'
      : serverDid === config.serverDid
        ? null
        : `they are for ${serverDid}, and server_did is ${config.serverDid}`
  const window = Number(variable(env, 'PDS_REPO_BACKFILL_LIMIT_MS') ?? BACKFILL_MILLIS) || BACKFILL_MILLIS
  const kept = config.firehose.logRetentionSecs * 1000 || Infinity
  return {
    serverDid,
    sessionKey: secret === null || sessionFault !== null ? null : Buffer.from(secret),
    sessionFault,
    rotationKey: rotationKeyOf(env),
    eventsSince: now - Math.min(window, kept),
  }
}

function rotationKeyOf(env: ReferenceFolder['env']): Uint8Array | null {
  const hex = variable(env, 'PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX')
  if (hex === null) return null
  if (!/^[\da-f]{64}$/i.test(hex))
    throw new OperatorError('PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX is not a key: it has 64 hexadecimal characters')
  return Buffer.from(hex, 'hex')
}

export interface Counts {
  accounts: number
  deactivated: number
  takenDown: number
  records: number
  blobs: number
  blobBytes: number
  appPasswords: number
  invites: number
  sessions: number
  appSessions: number
  browsers: number
  reservedKeys: number
  events: number
}

/** What is left behind. */
export interface Losses {
  sessions: number
  appSessions: number
  mailedCodes: number
  requests: number
  consents: number
}

export interface Survey {
  counts: Counts
  losses: Losses
  /** Repositories that a previous server has signed, and that are signed again here. */
  signedElsewhere: number
  /** What is wrong: accounts that cannot be brought here, and blobs that are missing or damaged. */
  faults: string[]
}

/** What belongs to an account, without the sessions that cannot continue. */
export function belongingsOf(
  { accounts }: Pick<ReferenceFolder, 'accounts'>,
  account: FormerAccount,
  { sessionKey }: Pick<Terms, 'sessionKey'>,
  now: Millis,
): Belongings & { lost: Pick<Losses, 'sessions' | 'appSessions'> } {
  const { did } = account
  const { sessions, lost } = sessionsOf(accounts, did, now)
  const apps = appSessionsOf(accounts, did, now)
  const continues = sessionKey !== null
  return {
    account,
    appPasswords: appPasswordsOf(accounts, did),
    sessions: continues ? sessions : [],
    appSessions: apps.sessions,
    lost: { sessions: lost + (continues ? 0 : sessions.length), appSessions: apps.lost },
  }
}

export interface SurveyOptions {
  now: Millis
  /** Also read every block and every blob. */
  isThorough: boolean
  onProgress(accounts: number): void
  /** Returns why an account cannot come here; null if it can. */
  obstacle(account: FormerAccount): Promise<string | null>
}

/** Read the folder. Faults of single accounts are listed, not thrown. */
export async function survey(folder: ReferenceFolder, terms: Terms, options: SurveyOptions): Promise<Survey> {
  const { accounts, sequencer } = folder
  const { now } = options
  const from = firstSeqSinceOf(sequencer, terms.eventsSince)
  const faults: string[] = []
  const onFault = (fault: string) => void faults.push(fault)
  const found: Survey = {
    counts: {
      ...noCounts,
      invites: invitesOf(accounts).length,
      browsers: [...browsersIn(accounts, now)].length,
      reservedKeys: reservedKeysOf(folder, onFault).length,
      events: from === null ? 0 : countEvents(folder, from, options.isThorough, onFault),
    },
    losses: { sessions: 0, appSessions: 0, ...leftBehind(accounts, now) },
    signedElsewhere: 0,
    faults,
  }
  await concurrently(accountsOf(accounts), ACCOUNTS_AT_ONCE, async (account) => {
    countAccount(found, belongingsOf(folder, account, terms, now))
    const obstacle = await options.obstacle(account)
    if (obstacle !== null) onFault(`${account.did}: ${obstacle}`)
    await surveyActor(found, folder, account.did, options.isThorough)
    options.onProgress(found.counts.accounts)
  })
  return found
}

/** Count the events. If `isThorough`, also read them, and count only those that can be taken over. */
function countEvents(
  { sequencer }: Pick<ReferenceFolder, 'sequencer'>,
  from: number,
  isThorough: boolean,
  onFault: (fault: string) => void,
): number {
  if (!isThorough) return countEventsOf(sequencer, from)
  let events = 0
  for (const page of eventsFrom(sequencer, from, onFault)) events += page.length
  return events
}

const noCounts: Counts = {
  accounts: 0,
  deactivated: 0,
  takenDown: 0,
  records: 0,
  blobs: 0,
  blobBytes: 0,
  appPasswords: 0,
  invites: 0,
  sessions: 0,
  appSessions: 0,
  browsers: 0,
  reservedKeys: 0,
  events: 0,
}

function countAccount({ counts, losses }: Survey, belongings: ReturnType<typeof belongingsOf>): void {
  const { account, appPasswords, sessions, appSessions, lost } = belongings
  counts.accounts++
  if (account.takedownRef !== null) counts.takenDown++
  else if (account.deactivatedAt !== null) counts.deactivated++
  counts.appPasswords += appPasswords.length
  counts.sessions += sessions.length
  counts.appSessions += appSessions.length
  losses.sessions += lost.sessions
  losses.appSessions += lost.appSessions
}

async function surveyActor(found: Survey, folder: ReferenceFolder, did: Did, isThorough: boolean): Promise<void> {
  const { counts, faults } = found
  try {
    await ReferenceActor.whileOpen(folder, did, async (actor) => {
      counts.records += actor.countRecords()
      const blobs = actor.blobs()
      counts.blobs += blobs.length
      for (const { size } of blobs) counts.blobBytes += size
      actor.preferences()
      if (!isThorough) return
      const { isSigned } = await verifyFormerRepo(actor, did)
      if (!isSigned) found.signedElsewhere++
      for (const fault of await verifyFormerBlobs(formerBlobs(folder), actor, did)) faults.push(`${did}: ${fault}`)
    })
  } catch (error) {
    if (!isFaultOfAccount(error)) throw error
    faults.push(`${did}: ${error.message}`)
  }
}

/** Returns the account for which a key was reserved; null if the key is stored under its own did:key. */
export const promisedTo = (name: string): Did | null => (name.startsWith('did:key:') ? null : parseDid(name))

/** Throws `OperatorError` if there are blobs, but their folder is missing: it may be on a disk that is not mounted. */
export function requireBlobFolder({ blobs }: Pick<ReferenceFolder, 'blobs'>, { counts }: Pick<Survey, 'counts'>): void {
  if (counts.blobs > 0 && blobs !== null && !existsSync(blobs.stored))
    throw new OperatorError(
      `the old server has ${counts.blobs} blobs, and ${blobs.stored} is missing: mount or copy it, or name its environment with --env`,
    )
}
