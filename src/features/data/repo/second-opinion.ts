/**
 * Verifies a stored repository with independent code: the reference implementation reads commit, signature and tree,
 * and `cborg` reads the records. Anything it finds after `repoFaults` found nothing is an error in our own rules.
 *
 * Memory use does not depend on the size of the repository: one path of the tree and one page of records are held. The
 * libraries are loaded on first use.
 */
import type { MST } from '@atproto/repo'
import type { Reader } from '../../../platform/database/database.ts'
import { Cid } from '../../../protocol/cid.ts'
import { StoredNodes } from './node-store.ts'
import { listAllRecords } from './record-store.ts'
import type { RepoHead } from './repo-store.ts'

/** Records read at once. */
const PAGE = 500
/** Most faults reported for one repository. */
const MAX_FAULTS = 100

/**
 * Returns what is wrong with the repository, in words; empty if nothing is. `reader` must be of a snapshot; `didKey` is
 * the account's signing key.
 */
export async function secondOpinion(reader: Reader, repo: RepoHead, didKey: string): Promise<string[]> {
  const libraries = await load()
  const faults: string[] = []
  try {
    for await (const fault of opinions(libraries, reader, repo, didKey)) if (faults.push(fault) === MAX_FAULTS) break
  } catch (error) {
    // The libraries throw errors of many kinds for input that they cannot read.
    faults.push(error instanceof Error ? error.message : String(error))
  }
  return faults
}

type Libraries = Awaited<ReturnType<typeof load>>

async function load() {
  const [reference, { sha256 }, cborg, { CID }, digests] = await Promise.all([
    import('@atproto/repo'),
    import('@atproto/crypto'),
    import('cborg'),
    import('multiformats/cid'),
    import('multiformats/hashes/digest'),
  ])
  return { reference, sha256, cborg, CID, digests }
}

async function* opinions(libraries: Libraries, reader: Reader, repo: RepoHead, didKey: string): AsyncGenerator<string> {
  const { reference, CID } = libraries
  const nodes = new StoredNodes(reader, repo.id)
  const store = blocksOf(libraries, async (cid) => {
    if (cid.equals(repo.head)) return repo.commitBlock
    return (await nodes.find([cid]))[0]?.bytes ?? null
  })
  if ((await cidOf(libraries, repo.commitBlock)) !== repo.head.toString()) yield 'the commit does not match its CID'
  const commit = await store.readObj(CID.decode(repo.head.bytes), reference.def.commit)
  if (commit.did !== repo.did || commit.rev !== repo.rev)
    yield `the commit has revision ${commit.rev} and belongs to ${commit.did}`
  if (!(await reference.verifyCommitSig(commit, didKey))) yield 'the signature is not from the key of the account'

  const records = storedRecords(reader, repo.id)
  let record = await records.next()
  for await (const leaf of leavesOf(libraries, reference.MST.load(store, commit.data), null)) {
    if (typeof leaf === 'string') {
      yield leaf
      continue
    }
    for (; !record.done && record.value.path < leaf.path; record = await records.next())
      yield `record ${record.value.path} is not in the tree`
    if (record.done || record.value.path !== leaf.path) {
      yield `record ${leaf.path} is missing`
      continue
    }
    if ((await cidOf(libraries, record.value.value)) !== leaf.cid) yield `record ${leaf.path} does not match its CID`
    if (!isCanonical(libraries, record.value.value)) yield `record ${leaf.path} is not in canonical form`
    record = await records.next()
  }
  for (; !record.done; record = await records.next()) yield `record ${record.value.path} is not in the tree`
}

/** The blocks of the repository, in the form that the reference implementation reads. */
function blocksOf({ reference }: Libraries, read: (cid: Cid) => Promise<Uint8Array | null>) {
  const Store = class extends reference.ReadableBlockstore {
    getBytes = ({ bytes }: { bytes: Uint8Array }) => read(new Cid(bytes))
    has = async (cid: { bytes: Uint8Array }) => (await this.getBytes(cid)) !== null
    getBlocks = (): never => {
      throw new Error('this storage reads blocks one at a time')
    }
  }
  return new Store()
}

/** Yields the leaves below a node in order, and as texts the faults of nodes. `layer` is null for the root. */
async function* leavesOf(
  libraries: Libraries,
  node: MST,
  layer: number | null,
): AsyncGenerator<{ path: string; cid: string } | string> {
  const { reference } = libraries
  const entries = await node.getEntries()
  if (!(await node.serialize()).cid.equals(node.pointer)) yield `node ${node.pointer} is not in canonical form`
  if (layer !== null && entries.length === 0) yield `node ${node.pointer} is empty`
  const own = layer ?? (await node.getLayer())
  for (const entry of entries) {
    if (entry.isLeaf()) {
      if ((await reference.mstUtil.leadingZerosOnHash(entry.key)) !== own)
        yield `record ${entry.key} is on the wrong layer of the tree`
      yield { path: entry.key, cid: entry.value.toString() }
      // Load the subtree separately, which keeps the tree from holding everything that was read.
    } else yield* leavesOf(libraries, reference.MST.load(node.storage, entry.pointer), own - 1)
  }
}

async function* storedRecords(reader: Reader, repoId: number): AsyncGenerator<{ path: string; value: Uint8Array }> {
  for (let after = ''; ;) {
    const page = await listAllRecords(reader, repoId, after, PAGE)
    yield* page
    if (page.length < PAGE) return
    after = page.at(-1)!.path
  }
}

const CBOR = 0x71
const SHA256 = 0x12

const cidOf = async ({ sha256, CID, digests }: Libraries, block: Uint8Array): Promise<string> =>
  CID.createV1(CBOR, digests.create(SHA256, await sha256(block))).toString()

const LINK_TAG = 42

/** The content of a CBOR tag 42, not interpreted. */
class Link {
  constructor(readonly bytes: Uint8Array) {}
}

/** Whether the block is strict CBOR in the only encoding that DAG-CBOR allows for its value. */
function isCanonical({ cborg }: Libraries, block: Uint8Array): boolean {
  const strict = {
    strict: true,
    allowIndefinite: false,
    allowUndefined: false,
    allowNaN: false,
    allowInfinity: false,
    rejectDuplicateMapKeys: true,
  }
  const tags: ((bytes: Uint8Array) => Link)[] = []
  tags[LINK_TAG] = (bytes) => new Link(bytes)
  const linked = (value: unknown) =>
    value instanceof Link
      ? [new cborg.Token(cborg.Type.tag, LINK_TAG), new cborg.Token(cborg.Type.bytes, value.bytes)]
      : null
  const again = cborg.encode(cborg.decode(block, { ...strict, tags }), {
    float64: true,
    typeEncoders: { Object: linked },
  })
  return Buffer.compare(again, block) === 0
}
