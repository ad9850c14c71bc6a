/**
 * Renames the server, once its configuration has the new name in `public_url` and the former one in `former_urls`.
 * Changes each identity whose keys are here, and tells all other holders what to sign.
 *
 * To go back, give the configuration the former name again, and rename in the other direction.
 */
import { invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { isOwnDid } from '../../../platform/configuration/service-names.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { hastenSteps, isStepWaiting } from '../../../platform/running/steps.ts'
import { fetchDocument } from '../../../platform/network/json-document.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import {
  conflictsBetween,
  countHandlesUnder,
  countIdentities,
  countOutcomes,
  findRename,
  forgetOutcomes,
  putRename,
  type HandleChoice,
} from './host-rename-store.ts'
import { addRenameStep, hostRenameStep, RENAME_KEY } from './host-rename-step.ts'

const DESCRIPTION_PATH = '/xrpc/com.atproto.server.describeServer'
const MAX_CONFLICTS = 100

/** Returns what renaming the server to the host of `url` would do. Changes nothing. */
export async function renamePlan(ctx: Context, url: string) {
  const { config, db } = ctx
  const { hostname } = new URL(url)
  const formerUrls = url === config.publicUrl ? config.formerUrls : [config.publicUrl]
  const formerHosts = formerUrls.map((one) => new URL(one).hostname)
  let handles = 0
  const conflicts: string[] = []
  for (const host of formerHosts) {
    handles += await countHandlesUnder(db, host)
    conflicts.push(...(await conflictsBetween(db, host, hostname, MAX_CONFLICTS)))
  }
  return {
    url,
    formerUrls,
    isConfigured: url === config.publicUrl && formerUrls.length > 0,
    isReached: await reaches(ctx, url),
    identities: await countIdentities(db),
    handles: {
      underFormerName: handles,
      offered: config.availableUserDomains.includes(hostname),
      domains: config.availableUserDomains,
      conflicts,
    },
  }
}

/** Returns whether requests to a URL reach this server; if not, what they reach. */
async function reaches(ctx: Context, url: string): Promise<{ ok: boolean; detail: string }> {
  const answer = await fetchDocument({ outbound: ctx.upstream, log: ctx.log }, url + DESCRIPTION_PATH)
  if (!answer.ok) return { ok: false, detail: answer.reason }
  const { did } = (answer.document ?? {}) as { did?: unknown }
  return isOwnDid(ctx.config, did)
    ? { ok: true, detail: 'this server answers there' }
    : { ok: false, detail: 'another server answers there' }
}

/**
 * Begin to rename, or continue now, because a step may be waiting, or an operator may have dropped it. Leaves settled
 * accounts alone, unless something is left to do for them. Throws `InvalidRequest` if the configuration does not have
 * the name.
 */
export async function beginRename(
  ctx: Context,
  { url, handles }: { url: string; handles: HandleChoice },
  record: (tx: Tx) => Promise<void>,
): Promise<void> {
  const { publicUrl, formerUrls, availableUserDomains } = ctx.config
  if (url !== publicUrl) throw invalidRequest(`public_url is ${publicUrl}: set it to ${url} first, and restart`)
  if (formerUrls.length === 0) throw invalidRequest('former_urls is empty: it must list the former public_url')
  const { hostname } = new URL(url)
  if (handles === 'rename' && !availableUserDomains.includes(hostname))
    throw invalidRequest(`available_user_domains does not list ${hostname}`)
  await ctx.db.transaction(async (tx) => {
    const before = await findRename(tx)
    if (before !== null && before.finishedAt === null && before.publicUrl === url && before.handles === handles) {
      if (!(await isStepWaiting(tx, hostRenameStep, RENAME_KEY))) await addRenameStep(ctx, tx)
      await hastenSteps(tx, hostRenameStep, ctx.clock.now())
      tx.afterCommit(() => ctx.steps.wake())
      return
    }
    await forgetOutcomes(tx, before?.publicUrl === url ? 'open' : 'all')
    await putRename(tx, { publicUrl: url, handles, begunAt: ctx.clock.now() })
    await addRenameStep(ctx, tx)
    await record(tx)
  })
}

/** Returns the progress of the last renaming; null if there was none. */
export async function renameStatus({ db }: Pick<Context, 'db'>) {
  const rename = await findRename(db)
  if (rename === null) return null
  const { plc, web } = await countIdentities(db)
  return {
    url: rename.publicUrl,
    handles: rename.handles,
    begunAt: wireTime(rename.begunAt),
    finishedAt: wireTimeOrNull(rename.finishedAt),
    accounts: plc + web,
    ...(await countOutcomes(db)),
  }
}
