/**
 * A second opinion on a stored repository, by code that is not ours: the reference implementation reads commit, signature
 * and tree, and `cborg` the records. What it finds after `repoFaults` has found nothing is a fault of our own rules.
 *
 * Memory does not grow with the repository: one path of the tree and one page of records are held. The libraries are
 * loaded when they are first asked.
 */
import type { MST } from '@atproto/repo'
import type { Reader } from '../../platform/database/database.ts'
import { Cid } from '../../protocol/cid.ts'
import { StoredNodes } from './node-store.ts'
import { listAllRecords } from './record-store.ts'
import type { RepoHead } from './repo-store.ts'

/** Records read at once. */
const PAGE = 500
/** Faults of one repository that are told. */
const MAX_FAULTS = 100

/** What is wrong with the repository, in words; empty when nothing is. Read from one snapshot. `didKey` is the signing key of the account. */
export async function secondOpinion(reader: Reader, repo: RepoHead, didKey: string): Promise<string[]> {
  const libraries = await load()
  const faults: string[] = []
  try {
    for await (const fault of opinions(libraries, reader, repo, didKey)) if (faults.push(fault) === MAX_FAULTS) break
  } catch (error) {
    // The libraries throw what they like for what they cannot read.
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
  if ((await cidOf(libraries, repo.commitBlock)) !== repo.head.toString()) yield 'the commit has other bytes than its CID says'
  const commit = await store.readObj(CID.decode(repo.head.bytes), reference.def.commit)
  if (commit.did !== repo.did || commit.rev !== repo.rev) yield `the commit is ${commit.rev} of ${commit.did}`
  if (!(await reference.verifyCommitSig(commit, didKey))) yield 'the signature is not by the key of the account'

  const records = storedRecords(reader, repo.id)
  let record = await records.next()
  for await (const leaf of leavesOf(libraries, reference.MST.load(store, commit.data), null)) {
    if (typeof leaf === 'string') {
      yield leaf
      continue
    }
    for (; !record.done && record.value.path < leaf.path; record = await records.next()) yield `record ${record.value.path} is not in the tree`
    if (record.done || record.value.path !== leaf.path) {
      yield `record ${leaf.path} is missing`
      continue
    }
    if ((await cidOf(libraries, record.value.value)) !== leaf.cid) yield `record ${leaf.path} has other bytes`
    if (!isCanonical(libraries, record.value.value)) yield `record ${leaf.path} is written in another way than it has to be`
    record = await records.next()
  }
  for (; !record.done; record = await records.next()) yield `record ${record.value.path} is not in the tree`
}

/** The blocks of the repository, for the reference. */
function blocksOf({ reference }: Libraries, read: (cid: Cid) => Promise<Uint8Array | null>) {
  const Store = class extends reference.ReadableBlockstore {
    getBytes = ({ bytes }: { bytes: Uint8Array }) => read(new Cid(bytes))
    has = async (cid: { bytes: Uint8Array }) => (await this.getBytes(cid)) !== null
    getBlocks = (): never => {
      throw new Error('blocks are read one by one')
    }
  }
  return new Store()
}

/** The leaves below a node in order, and in words what is wrong with nodes. Without a layer it is the root. */
async function* leavesOf(libraries: Libraries, node: MST, layer: number | null): AsyncGenerator<{ path: string; cid: string } | string> {
  const { reference } = libraries
  const entries = await node.getEntries()
  if (!(await node.serialize()).cid.equals(node.pointer)) yield `node ${node.pointer} is written in another way than it has to be`
  if (layer !== null && entries.length === 0) yield `node ${node.pointer} is empty`
  const own = layer ?? (await node.getLayer())
  for (const entry of entries) {
    if (entry.isLeaf()) {
      if ((await reference.mstUtil.leadingZerosOnHash(entry.key)) !== own) yield `record ${entry.key} is in another layer of the tree than it has to be`
      yield { path: entry.key, cid: entry.value.toString() }
      // Loaded anew, so that the tree does not keep what was read of it.
    } else yield* leavesOf(libraries, reference.MST.load(node.storage, entry.pointer), own - 1)
  }
}

async function* storedRecords(reader: Reader, repoId: number): AsyncGenerator<{ path: string; value: Uint8Array }> {
  for (let after = ''; ; ) {
    const page = await listAllRecords(reader, repoId, after, PAGE)
    yield* page
    if (page.length < PAGE) return
    after = page.at(-1)!.path
  }
}

const CBOR = 0x71
const SHA256 = 0x12

const cidOf = async ({ sha256, CID, digests }: Libraries, block: Uint8Array): Promise<string> => CID.createV1(CBOR, digests.create(SHA256, await sha256(block))).toString()

const LINK_TAG = 42

/** A tag 42, whatever is in it. */
class Link {
  constructor(readonly bytes: Uint8Array) {}
}

/** Whether the block is strict CBOR, and the only way to write what it says. */
function isCanonical({ cborg }: Libraries, block: Uint8Array): boolean {
  const strict = { strict: true, allowIndefinite: false, allowUndefined: false, allowNaN: false, allowInfinity: false, rejectDuplicateMapKeys: true }
  const tags: ((bytes: Uint8Array) => Link)[] = []
  tags[LINK_TAG] = (bytes) => new Link(bytes)
  const linked = (value: unknown) => (value instanceof Link ? [new cborg.Token(cborg.Type.tag, LINK_TAG), new cborg.Token(cborg.Type.bytes, value.bytes)] : null)
  const again = cborg.encode(cborg.decode(block, { ...strict, tags }), { float64: true, typeEncoders: { Object: linked } })
  return Buffer.compare(again, block) === 0
}
