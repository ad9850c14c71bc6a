/**
 * Another service that is called with tokens of accounts: with the library of the reference, and its memory of keys.
 */
import type { AtpAgent } from '@atproto/api'
import { IdResolver, MemoryCache } from '@atproto/identity'
import { verifyJwt } from '@atproto/xrpc-server'

export const READER_DID = 'did:web:reader.test'
export const READER_METHOD = 'com.example.read'

export class TokenReader {
  readonly #ids: IdResolver

  constructor(plcUrl: string) {
    // Its own way of fetching asks for another runtime.
    this.#ids = new IdResolver({ plcUrl, didCache: new MemoryCache(), fetch })
  }

  /** Who the account says it is, in a token that it has its server make now. */
  async hear(agent: AtpAgent): Promise<string> {
    const { data } = await agent.com.atproto.server.getServiceAuth({ aud: READER_DID, lxm: READER_METHOD })
    return this.read(data.token)
  }

  /** Who the token speaks for. Rejects with what the library throws. */
  async read(token: string): Promise<string> {
    return (
      await verifyJwt(token, READER_DID, READER_METHOD, (iss, fresh) => this.#ids.did.resolveAtprotoKey(iss, fresh))
    ).iss
  }
}
