/**
 * Repositories as archives.
 *
 * An archive shows one state, whatever is written while it is made: it is read from a snapshot, at full speed, into a
 * spool, and goes from there to the client at the client's speed. So a slow client holds nothing that others wait for,
 * and memory does not grow with the repository.
 */
import { setImmediate } from 'node:timers/promises'
import type { Context } from '../../platform/context.ts'
import { Spool } from '../../platform/spool.ts'
import { carOf, writeCar, type Block } from '../../protocol/car.ts'
import type { Cid } from '../../protocol/cid.ts'
import type { Did, Tid } from '../../protocol/identifiers.ts'
import { blocksOf, recordProof, repoBlocks, repoHead } from '../repo/repo.ts'

const CAR_TYPE = 'application/vnd.ipld.car'

/** The whole repository, or what came after a revision. Its root is the present commit. Null when there is none. */
export function exportRepo(ctx: Context, did: Did, since: Tid | null): Promise<Response | null> {
  return ctx.db.snapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    return repo && spooled(ctx, repo.head, repoBlocks(reader, repo, since))
  })
}

/** Blocks by their CIDs, each once, in an archive without a root. */
export function exportBlocks(ctx: Context, did: Did, cids: readonly Cid[]): Promise<{ ok: true; response: Response } | { ok: false; missing: Cid[] }> {
  return ctx.db.snapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    const found = repo === null ? cids.map(() => null) : await blocksOf(reader, repo, cids)
    const missing = cids.filter((_, i) => found[i] === null)
    if (missing.length > 0) return { ok: false, missing }
    const blocks = cids.map((cid, i): Block => ({ cid, bytes: found[i]! }))
    return { ok: true, response: await spooled(ctx, null, [blocks]) }
  })
}

async function spooled(ctx: Context, root: Cid | null, pages: Parameters<typeof writeCar>[1]): Promise<Response> {
  const spool = new Spool(ctx.config.dataDir)
  try {
    for await (const chunk of writeCar(root, pages)) {
      spool.write(chunk)
      await setImmediate()
    }
    return new Response(spool.stream(), { headers: { 'Content-Type': CAR_TYPE, 'Content-Length': String(spool.size) } })
  } catch (error) {
    spool.close()
    throw error
  }
}

/** Proof that a record is there, or that it is not, and the record. Null when there is no repository. */
export function exportRecord(ctx: Context, did: Did, path: string): Promise<Response | null> {
  return ctx.db.snapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    if (repo === null) return null
    const car = carOf(repo.head, await recordProof(ctx, reader, repo, path))
    return new Response(car as Uint8Array<ArrayBuffer>, { headers: { 'Content-Type': CAR_TYPE } })
  })
}
