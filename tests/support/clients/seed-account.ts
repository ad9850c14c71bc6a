/** An account with a real did:plc, put in place without signing up. */
import { addAccount } from '../../../src/features/identity/accounts/accounts.ts'
import { makeAccountKey } from '../../../src/features/identity/account-keys/account-keys.ts'
import type { SessionKind } from '../../../src/features/access/callers/callers.ts'
import { serverRotationKey } from '../../../src/features/identity/identity/identity.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, type SigningKey } from '../../../src/protocol/keys.ts'
import { genesisDid, genesisOperation, signOperation } from '../../../src/protocol/plc.ts'
import { bearer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'
import { sessionToken } from './session-token.ts'

export interface SeededAccount {
  did: Did
  handle: Handle
  signingKey: string
  /** Authorization header of a session. */
  as(kind: SessionKind): Promise<{ authorization: string }>
}

interface Wishes {
  /** A DID of another method; no directory is told. */
  did?: string
  email?: string | null
  /** Above the service's own key. */
  rotationKeys?: string[]
  /** Signs the genesis, and the service holds no rotation key. */
  owner?: SigningKey
}

export async function seedAccount(
  pds: TestPds,
  name: string,
  { did: given, email = `${name}@mail.test`, rotationKeys = [], owner }: Wishes = {},
): Promise<SeededAccount> {
  const { ctx } = pds
  const handle = `${name}.test` as Handle
  const key = makeAccountKey(ctx, 'p256')
  const rotationKey = owner ?? (await serverRotationKey(ctx))
  const genesis = signOperation(
    genesisOperation({
      rotationKeys: [...rotationKeys, formatDidKey(rotationKey.publicKey)],
      signingKey: key.signingKey,
      handle,
      pdsEndpoint: ctx.config.publicUrl,
    }),
    rotationKey,
  )
  const did = (given ?? genesisDid(genesis)) as Did
  if (!given) await ctx.plc.submit(did, genesis)
  await ctx.db.transaction((tx) =>
    addAccount(tx, {
      did,
      handle,
      email,
      passwordHash: null,
      ...key,
      createdAt: ctx.clock.now(),
      deactivatedAt: null,
      deleteAfter: null,
    }),
  )
  return {
    did,
    handle,
    signingKey: key.signingKey,
    as: async (kind) => bearer(await sessionToken({ ctx }, did, kind)),
  }
}
