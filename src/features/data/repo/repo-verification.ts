/** Checks a stored repository for consistency: signature, tree, records, and no leftover rows. */
import { unthrottled, type Throttle } from '../../../base/pace.ts'
import { inPieces, type Reader } from '../../../platform/database/database.ts'
import { cidOfCbor, type Cid } from '../../../protocol/cid.ts'
import { parseCommit, verifyCommit } from '../../../protocol/commit.ts'
import type { PublicKey } from '../../../protocol/keys.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { walkTree } from '../../../protocol/mst.ts'
import { countFramedRecords, findRecordsAt } from './record-store.ts'
import { StoredNodes } from './node-store.ts'
import { findCounts, type RepoHead } from './repo-store.ts'

/**
 * Returns what is wrong with the repository, in words; empty if nothing is. `reader` must be of a snapshot. `throttled`
 * runs each piece of the work.
 */
export async function repoFaults(
  reader: Reader,
  repo: RepoHead,
  key: PublicKey,
  throttled: Throttle = unthrottled,
): Promise<string[]> {
  const faults = commitFaults(repo, key)
  const stored = new StoredNodes(reader, repo.id)
  const readNode = async (cid: Cid): Promise<Uint8Array | null> => {
    const [node] = await stored.find([cid])
    if (node !== undefined && !cidOfCbor(node.bytes).equals(cid)) faults.push(`node ${cid} does not match its CID`)
    return node?.bytes ?? null
  }
  let nodes = 0
  let records = 0
  try {
    for await (const page of walkTree(repo.data, (cid) => throttled(() => readNode(cid)))) {
      nodes += page.nodes.length
      records += page.entries.length
      for (const entries of inPieces(page.entries))
        faults.push(...(await throttled(() => recordFaults(reader, repo.id, entries))))
    }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return [...faults, `the tree cannot be read (${error.message})`]
  }
  const kept = await findCounts(reader, repo.id)
  const storedNodes = await stored.countFramed(throttled)
  const storedRecords = await countFramedRecords(reader, repo.id, throttled)
  const misframed = storedNodes.misframed + storedRecords.misframed
  if (storedNodes.count !== nodes) faults.push(`${storedNodes.count} nodes are stored and ${nodes} are in the tree`)
  if (misframed > 0) faults.push(`${misframed} blocks would be unreadable in an archive`)
  if (storedRecords.count !== records)
    faults.push(`${storedRecords.count} records are stored and ${records} are in the tree`)
  if ((kept.records ?? records) !== records)
    faults.push(`${kept.records} records are counted and ${records} are in the tree`)
  if ((kept.nodes ?? nodes) !== nodes) faults.push(`${kept.nodes} nodes are counted and ${nodes} are in the tree`)
  return faults
}

function commitFaults({ did, rev, head, data, commitBlock }: RepoHead, key: PublicKey): string[] {
  try {
    const commit = parseCommit(commitBlock)
    const faults: [boolean, string][] = [
      [cidOfCbor(commitBlock).equals(head), 'the commit does not match its CID'],
      [commit.did === did, `the commit belongs to ${commit.did}`],
      [commit.rev === rev, `the commit has revision ${commit.rev}, the row ${rev}`],
      [commit.data.equals(data), 'the commit names another tree than the row'],
      [verifyCommit(commit, key), 'the signature is not from the key of the account'],
    ]
    return faults.filter(([isRight]) => !isRight).map(([, fault]) => fault)
  } catch (error) {
    if (error instanceof Malformed) return [`the commit cannot be read (${error.message})`]
    throw error
  }
}

async function recordFaults(
  reader: Reader,
  repoId: number,
  entries: readonly [path: string, cid: Cid][],
): Promise<string[]> {
  const stored = new Map(
    (
      await findRecordsAt(
        reader,
        repoId,
        entries.map(([path]) => path),
      )
    ).map((record) => [record.path, record]),
  )
  return entries.flatMap(([path, cid]) => {
    const record = stored.get(path)
    if (record === undefined) return [`record ${path} is missing`]
    if (!record.cid.equals(cid)) return [`record ${path} is ${record.cid}, but ${cid} in the tree`]
    return cidOfCbor(record.value).equals(cid) ? [] : [`record ${path} does not match its CID`]
  })
}
