/** An account elsewhere that publishes lexicons: a repository of the reference implementation behind its own DID. */
import { P256Keypair } from '@atproto/crypto'
import { getRecords, MemoryBlockstore, Repo, WriteOpAction } from '@atproto/repo'
import { startUpstream, type Upstream } from './upstream.ts'

export interface LexiconAuthor extends Upstream {
  /** Add or replace a document, or whatever is put in its place. */
  publish(nsid: string, document: object): Promise<void>
}

const COLLECTION = 'com.atproto.lexicon.schema'

export async function startLexiconAuthor(): Promise<LexiconAuthor> {
  const upstream = startUpstream()
  const key = await P256Keypair.create()
  const storage = new MemoryBlockstore()
  const { did } = upstream
  upstream.services['atproto_pds'] = upstream.url
  upstream.document['verificationMethod'] = [
    { id: `${did}#atproto`, type: 'Multikey', controller: did, publicKeyMultibase: key.did().slice('did:key:'.length) },
  ]
  let repo = await Repo.create(storage, did, key)
  upstream.answer('com.atproto.sync.getRecord', async (request) => {
    const params = new URL(request.url).searchParams
    const car = getRecords(storage, repo.cid, [{ collection: params.get('collection')!, rkey: params.get('rkey')! }])
    return new Response(Buffer.concat(await Array.fromAsync(car)), {
      headers: { 'content-type': 'application/vnd.ipld.car' },
    })
  })
  return Object.assign(upstream, {
    async publish(nsid: string, document: object) {
      const present = await repo.data.get(`${COLLECTION}/${nsid}`)
      const action = present ? WriteOpAction.Update : WriteOpAction.Create
      repo = await repo.applyWrites(
        { action, collection: COLLECTION, rkey: nsid, record: { $type: COLLECTION, ...document } as never } as never,
        key,
      )
    },
  })
}
