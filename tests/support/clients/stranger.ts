/** Somebody of another server, who holds all keys of the identity: what that server would sign, they sign. */
import { formatDidKey, type Curve, type SigningKey } from '../../../src/protocol/keys.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { newSigningSecret, openSigningKey } from '../../../src/platform/secrets/signing-keys.ts'
import { genesisDid, genesisOperation, nextOperation, signOperation, type PlcState } from '../../../src/protocol/plc.ts'
import { formatServiceToken } from '../../../src/protocol/service-token.ts'
import { holder, PASSWORD, xrpc, type TestAccount } from './account.ts'
import { bearer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

export interface Stranger {
  did: Did
  /** Signs repository, tokens and operations, as long as the identity says so. */
  key: SigningKey
  didKey: Did
  /** A service token, for moving to the server unless the claims say something else. */
  token(claims?: object): string
  /** Change the identity. */
  publish(changes: Partial<PlcState>): Promise<void>
}

/** Has an identity in the directory of that server. */
export async function stranger(pds: Pick<TestPds, 'ctx'>, curve: Curve): Promise<Stranger> {
  const key = openSigningKey(curve, newSigningSecret(curve))
  const didKey = formatDidKey(key.publicKey)
  const genesis = signOperation(
    genesisOperation({
      rotationKeys: [didKey],
      signingKey: didKey,
      handle: 'stranger.elsewhere.test' as Handle,
      pdsEndpoint: 'https://elsewhere.example.com',
    }),
    key,
  )
  const did = genesisDid(genesis)
  await pds.ctx.plc.submit(did, genesis)
  return keeper(pds, did, key)
}

/** Holds a rotation key of an identity, which signs the tokens too once the identity names it for that. */
export function keeper({ ctx }: Pick<TestPds, 'ctx'>, did: Did, key: SigningKey): Stranger {
  return {
    did,
    key,
    didKey: formatDidKey(key.publicKey),
    token(claims = {}) {
      const nowSecs = Math.floor(ctx.clock.now() / 1000)
      return formatServiceToken(key, {
        iss: did,
        aud: ctx.config.serverDid,
        lxm: 'com.atproto.server.createAccount',
        iat: nowSecs,
        exp: nowSecs + 60,
        jti: crypto.randomUUID(),
        ...claims,
      })
    },
    async publish(changes) {
      const last = await ctx.plc.lastOperation(did)
      await ctx.plc.submit(did, signOperation(nextOperation(last!, changes)!, key))
    },
  }
}

/** Moves in, empty-handed: the identity names the server, and the account is active there. */
export async function moveIn(
  pds: Pick<TestPds, 'url'>,
  { did, didKey, token, publish }: Stranger,
  name: string,
): Promise<TestAccount> {
  const wanted = { did, handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD }
  const created = await xrpc(pds, 'com.atproto.server.createAccount', { json: wanted, headers: bearer(token()) })
  if (created.status !== 200) throw new Error(`moving in answered ${created.status} ${JSON.stringify(created.body)}`)
  const account = holder(pds, { ...wanted, ...created.body })
  const { body: credentials } = await account.call('com.atproto.identity.getRecommendedDidCredentials')
  await publish({ ...credentials, rotationKeys: [didKey, ...credentials.rotationKeys] })
  const activated = await account.call('com.atproto.server.activateAccount', { method: 'POST' })
  if (activated.status !== 200)
    throw new Error(`activation answered ${activated.status} ${JSON.stringify(activated.body)}`)
  return account
}
