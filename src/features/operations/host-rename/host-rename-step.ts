/**
 * Goes through the accounts after the server was renamed, some in each try, and adds itself again until all of them are
 * settled. The outcome for each account is a row, so a try that is cut off continues where it was. An account that
 * fails holds up no other: it is tried again after all the others.
 */
import { DAY_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import type { Context } from '../../../platform/context.ts'
import { Refusal } from '../../../http/errors.ts'
import type { DidPlace } from '../../../http/paged-list.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import { parseHandle, type Did, type Handle } from '../../../protocol/identifiers.ts'
import { accountOf, accountsAfter, type Account } from '../../identity/accounts/accounts.ts'
import { changeHandle, keepHandle } from '../../identity/handles/handles.ts'
import { resolveDid, verdictOf } from '../../identity/identity/identity.ts'
import { addMail, hostRenamedMail } from '../../identity/mails/mails.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import {
  findRename,
  finishRename,
  noteFailure,
  settleAccount,
  settledAmong,
  unsettledAfter,
  type HostRename,
} from './host-rename-store.ts'
import { renameIdentity } from './renamed-identity.ts'

/** Accounts in one try, and the wait before the next try: the directory serves others too. */
const PAGE_ACCOUNTS = 20
const PAUSE_SECS = 2
/**
 * A try begins no account later than this, so that it ends in time even if the directory is slow. If two tries
 * overlapped, the operations of each would make the directory refuse those of the other.
 */
const MAX_ROUND_MILLIS = MINUTE_MILLIS
/** Longer than `MAX_ROUND_MILLIS`, plus the longest time that the requests for one account can take. */
const MAX_TRY_MILLIS = 4 * MINUTE_MILLIS
/** The wait before accounts that have failed are tried again. */
const RETRY_SECS = 300
/** A try ends after this many accounts in a row for which the directory is unreachable; then comes this wait. */
const MAX_DIRECTORY_FAILURES = 3
const OUTAGE_SECS = 60
/** How long the former handle of an account stays reserved for it. */
const FORMER_HANDLE_KEPT_MILLIS = 365 * DAY_MILLIS
const MAX_DETAIL_CHARS = 500
const ACTOR = 'rename-host'
export const RENAME_KEY = 'accounts'

interface Progress {
  /** The last account that was tried; null before the first. */
  after: DidPlace | null
  /** Whether all accounts have been tried, and now those are tried again that are not settled. */
  isAgain?: boolean
}

export const hostRenameStep: StepKind<Progress> = {
  name: 'host-rename',
  concurrency: 1,
  maxSteps: 1,
  maxTries: null,
  firstWaitSecs: 5,
  maxWaitSecs: 300,
  maxTryMillis: MAX_TRY_MILLIS,
  async take(ctx, { payload: { after, isAgain = false }, end }) {
    const rename = await findRename(ctx.db)
    // The server may have been renamed again, or have its former name back.
    if (rename === null || rename.finishedAt !== null || rename.publicUrl !== ctx.config.publicUrl) return
    const page = isAgain
      ? await unsettledAfter(ctx.db, after?.did ?? null, PAGE_ACCOUNTS)
      : await accountsAfter(ctx.db, after, PAGE_ACCOUNTS)
    const dids = page.map(({ did }) => did)
    const settled = await settledAmong(ctx.db, dids)
    const open = dids.filter((did) => !settled.has(did))
    const stop = await renameAll(ctx, rename, open)
    const last = stop === null ? page.at(-1) : page.find(({ did }) => did === stop.did)
    await ctx.db.transaction(async (tx) => {
      if (!(await end(tx))) return
      if (last !== undefined && (stop !== null || page.length === PAGE_ACCOUNTS)) {
        const { did, createdAt } = last
        const waitSecs = stop?.waitSecs ?? (open.length > 0 ? PAUSE_SECS : 0)
        await addRenameStep(ctx, tx, { after: { did, createdAt }, isAgain }, waitSecs)
      } else if ((await unsettledAfter(tx, null, 1)).length > 0)
        await addRenameStep(ctx, tx, { after: null, isAgain: true }, RETRY_SECS)
      else await finishRename(tx, ctx.clock.now())
    })
  },
}

/** Continue from an account, or begin with the first one. Replaces a step that is pending. */
export const addRenameStep = (
  ctx: Context,
  tx: Tx,
  progress: Progress = { after: null },
  waitSecs = 0,
): Promise<void> => ctx.steps.add(tx, hostRenameStep, { key: RENAME_KEY, payload: progress, waitSecs })

interface Stop {
  /** The last account that was tried. */
  did: Did
  waitSecs: number
}

/**
 * Returns where the try ended early, because the directory is unreachable or slow; null if all accounts were tried. The
 * next try continues after that account: the directory may have failed for these accounts only.
 */
async function renameAll(ctx: Context, rename: HostRename, dids: readonly Did[]): Promise<Stop | null> {
  const endsAt = ctx.clock.monotonic() + MAX_ROUND_MILLIS
  let directoryFailures = 0
  for (const did of dids) {
    try {
      await renameAccount(ctx, rename, did)
      directoryFailures = 0
    } catch (error) {
      ctx.log.warn('could not update the identity of an account to the new host name; will retry', { did, error })
      const detail = (error instanceof Error ? error.message : String(error)).slice(0, MAX_DETAIL_CHARS)
      await ctx.db.transaction((tx) => noteFailure(tx, did, detail))
      directoryFailures = isOutage(error) ? directoryFailures + 1 : 0
      if (directoryFailures === MAX_DIRECTORY_FAILURES) return { did, waitSecs: OUTAGE_SECS }
    }
    if (ctx.clock.monotonic() > endsAt) return { did, waitSecs: PAUSE_SECS }
  }
  return null
}

/** Whether the directory failed, rather than refusing the request. */
const isOutage = (error: unknown): boolean =>
  error instanceof PlcDirectoryError && ['unknown', 'postponed'].includes(verdictOf(error))

async function renameAccount(ctx: Context, rename: HostRename, did: Did): Promise<void> {
  const account = await accountOf(ctx.db, did)
  if (account === null) return
  const { state, detail } = await renameIdentity(ctx, did)
  const handle = rename.handles === 'rename' && state !== 'elsewhere' ? renamedHandle(ctx, account) : null
  const handleFault = handle && (await handleFaultOf(ctx, did, handle))
  await ctx.db.transaction(async (tx) => {
    const present = await accountOf(tx, did)
    if (present === null) return
    await settleAccount(tx, { did, state, detail, handleFault }, ctx.clock.now())
    const { email } = present
    if (state === 'by_holder' && email !== null)
      await addMail(ctx, tx, {
        key: `host renamed ${did}`,
        did,
        what: 'host_renamed',
        causedBy: 'operator',
        mail: await hostRenamedMail(ctx, { ...present, email }, { isPlc: isPlcDid(did) }),
      })
    if (state === 'updated') await sequenceEvents(ctx, tx, [{ type: 'identity', did }])
  })
  await tidyUp(ctx, () => resolveDid(ctx, did, { live: true }))
}

/** The counterpart of a handle under a former host name; null if it is not under one. */
function renamedHandle({ config }: Pick<Context, 'config'>, { handle }: Account): Handle | null {
  const { hostname } = new URL(config.publicUrl)
  const former = config.formerUrls.map((url) => `.${new URL(url).hostname}`)
  const suffix = former.find((one) => handle?.endsWith(one))
  return suffix === undefined ? null : parseHandle(`${handle!.slice(0, -suffix.length)}.${hostname}`)
}

/** Returns why the account cannot have the handle; null once it has it. */
async function handleFaultOf(ctx: Context, did: Did, handle: Handle): Promise<string | null> {
  try {
    await keepFormerHandle(ctx, did)
    await changeHandle({ ctx }, did, handle, { operated: { actor: ACTOR }, allowReserved: true })
    return null
  } catch (error) {
    if (error instanceof Refusal && error.status < 500) return error.message
    throw error
  }
}

/** People and apps know the account by its former handle, so no other account may take it. */
const keepFormerHandle = ({ db, clock }: Context, did: Did): Promise<void> =>
  db.transaction(async (tx) => {
    const account = await accountOf(tx, did)
    if (account?.handle != null)
      await keepHandle(tx, { handle: account.handle, owner: did, until: clock.now() + FORMER_HANDLE_KEPT_MILLIS })
  })
