/**
 * Goes through the accounts after the server was renamed, some in each try, and adds itself again until all of them are
 * settled. What was done for an account is a row, so a try that is cut off continues where it was.
 */
import { isPlcDid } from '../../../protocol/plc.ts'
import type { Context } from '../../../platform/context.ts'
import { Refusal } from '../../../http/errors.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import { parseHandle, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'
import { accountOf, accountsAfter, type Account } from '../../identity/accounts/accounts.ts'
import { changeHandle } from '../../identity/handles/handles.ts'
import { resolveDid } from '../../identity/identity/identity.ts'
import { addMail, hostRenamedMail } from '../../identity/mails/mails.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { findRename, finishRename, settleAccount, settledAmong, type HostRename } from './host-rename-store.ts'
import { renameIdentity } from './renamed-identity.ts'

/** Accounts of one try, and the wait before the next: the directory serves others too. */
const PAGE_ACCOUNTS = 20
const PAUSE_SECS = 2
const ACTOR = 'rename-host'
export const RENAME_KEY = 'accounts'

interface Progress {
  /** The last account that is settled; null before the first. */
  after: { did: Did; createdAt: Millis } | null
}

export const hostRenameStep: StepKind<Progress> = {
  name: 'host-rename',
  concurrency: 1,
  maxSteps: 1,
  maxTries: null,
  firstWaitSecs: 5,
  maxWaitSecs: 300,
  async take(ctx, { payload: { after }, end }) {
    const rename = await findRename(ctx.db)
    // The server may have been renamed again, or have its former name back.
    if (rename === null || rename.finishedAt !== null || rename.publicUrl !== ctx.config.publicUrl) return
    const page = await accountsAfter(ctx.db, after, PAGE_ACCOUNTS)
    const dids = page.map(({ did }) => did)
    const settled = await settledAmong(ctx.db, dids)
    const open = dids.filter((did) => !settled.has(did))
    for (const did of open) await renameAccount(ctx, rename, did)
    const last = page.at(-1)
    await ctx.db.transaction(async (tx) => {
      if (!(await end(tx))) return
      if (last === undefined || page.length < PAGE_ACCOUNTS) await finishRename(tx, ctx.clock.now())
      else await addRenameStep(ctx, tx, { did: last.did, createdAt: last.createdAt }, open.length > 0 ? PAUSE_SECS : 0)
    })
  },
}

/** Continue after an account, or from the first. Replaces a step that waits already. */
export const addRenameStep = (ctx: Context, tx: Tx, after: Progress['after'] = null, waitSecs = 0): Promise<void> =>
  ctx.steps.add(tx, hostRenameStep, { key: RENAME_KEY, payload: { after }, waitSecs })

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
        mail: hostRenamedMail(ctx, { ...present, email }, { isPlc: isPlcDid(did) }),
      })
    if (state === 'updated') await sequenceEvents(ctx, tx, [{ type: 'identity', did }])
  })
  await resolveDid(ctx, did, { live: true })
}

/** The counterpart of a handle under a former host name; null if it is not under one. */
export function renamedHandle({ config }: Pick<Context, 'config'>, { handle }: Account): Handle | null {
  const { hostname } = new URL(config.publicUrl)
  const former = config.formerUrls.map((url) => `.${new URL(url).hostname}`)
  const suffix = former.find((one) => handle?.endsWith(one))
  return suffix === undefined ? null : parseHandle(`${handle!.slice(0, -suffix.length)}.${hostname}`)
}

/** Returns why the account cannot have the handle; null once it has it. */
async function handleFaultOf(ctx: Context, did: Did, handle: Handle): Promise<string | null> {
  try {
    await changeHandle({ ctx }, did, handle, { actor: ACTOR, allowReserved: true })
    return null
  } catch (error) {
    if (error instanceof Refusal && error.status < 500) return error.message
    throw error
  }
}
