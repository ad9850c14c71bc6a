/**
 * Fetches the lexicon document that the authority of an NSID publishes. A DNS record names the account of the
 * authority. The document is a record in its repository, and comes with a proof.
 *
 * Source: atproto "Lexicon", "Lexicon Publication and Resolution".
 */
import type { Context } from '../../../platform/context.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { LookupsFull } from '../../../platform/network/resolver.ts'
import { pdsEndpoint, publishedSigningKey } from '../../../protocol/did-document.ts'
import { recordedDid } from '../../../protocol/dns-did.ts'
import { type Did, type Nsid } from '../../../protocol/identifiers.ts'
import { dataToJson } from '../../../protocol/data-model.ts'
import { parseDidKey } from '../../../protocol/keys.ts'
import {
  lexiconExcess,
  parseLexiconDocument,
  type LexiconDocument,
} from '../../../protocol/lexicons/lexicon-document.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { readRecordProof } from '../../../protocol/record-proof.ts'
import { resolveDid } from '../../identity/identity/identity.ts'

/**
 * `absent`: the authority publishes no valid document. `too-large`: it publishes one beyond a limit of this server,
 * which `excess` names. `unreachable`: the document could not be fetched or proved.
 */
export type LexiconFetch =
  | { ok: true; document: LexiconDocument }
  | { ok: false; fault: 'absent' | 'unreachable' }
  | { ok: false; fault: 'too-large'; excess: string }

const COLLECTION = 'com.atproto.lexicon.schema'
const FETCH_TIMEOUT_MILLIS = 5000
const MAX_PROOF_BYTES = 1024 ** 2

const absent = { ok: false, fault: 'absent' } as const
const unreachable = { ok: false, fault: 'unreachable' } as const

/** Nothing is cached here. Failures of the network and bad proofs are faults and are not thrown. */
export async function fetchLexicon(ctx: Context, nsid: Nsid): Promise<LexiconFetch> {
  const authority = await lexiconAuthority(ctx, nsid)
  if (authority === 'unreachable') return unreachable
  if (authority === null) return absent
  try {
    const resolution = await resolveDid(ctx, authority)
    if (!resolution.ok) return unreachable
    const endpoint = pdsEndpoint(resolution.document)
    const didKey = publishedSigningKey(resolution.document)
    const key = didKey && parseDidKey(didKey)
    if (!endpoint || !key) return absent
    const params = new URLSearchParams({ did: authority, collection: COLLECTION, rkey: nsid })
    const response = await ctx.outbound.fetch(`${endpoint}/xrpc/com.atproto.sync.getRecord?${params}`, {
      headersTimeoutMillis: FETCH_TIMEOUT_MILLIS,
      bodyTimeoutMillis: FETCH_TIMEOUT_MILLIS,
      maxBytes: MAX_PROOF_BYTES,
    })
    if (!response.ok || !response.body) {
      await response.body?.cancel()
      return unreachable
    }
    const record = await readRecordProof(response.body, { did: authority, key, path: `${COLLECTION}/${nsid}` })
    const json = dataToJson(record)
    const excess = lexiconExcess(json)
    if (excess !== null) return { ok: false, fault: 'too-large', excess }
    const document = parseLexiconDocument(json, nsid)
    return document ? { ok: true, document } : absent
  } catch (error) {
    if (error instanceof OutboundError || error instanceof LookupsFull || error instanceof Malformed) return unreachable
    throw error
  }
}

/**
 * Returns the account that is the authority of the NSID, null if DNS names none, or `unreachable` if the lookup fails.
 */
function lexiconAuthority({ resolver }: Context, nsid: Nsid): Promise<Did | 'unreachable' | null> {
  const domain = nsid.split('.').slice(0, -1).reverse().join('.')
  return resolver.texts(`_lexicon.${domain}`).then(recordedDid, () => 'unreachable')
}
