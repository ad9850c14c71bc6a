/** App passwords: made here, shown once, each with grants that cannot change. */
import type { Exchange } from '../../http/endpoint.ts'
import { invalidRequest } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { isUniqueViolation } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { base32 } from '../../protocol/cid.ts'
import { accountStatus, announce, announceIn, hashGeneratedPassword, refuseTakendown, type StillHolds } from '../accounts/accounts.ts'
import { deleteAppPassword, findAppPassword, insertAppPassword, listAppPasswords, type AppPassword } from './app-password-store.ts'
import { deleteSessionsOfAppPassword } from './session-store.ts'

const MAX_NAME_CHARS = 255
const MAX_PER_ACCOUNT = 1000
const formatPattern = /^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/
const SECRET_BYTES = 10

/** The new app password with its secret, which is not kept. */
export async function createAppPassword(exchange: Exchange, did: Did, wanted: Omit<AppPassword, 'createdAt'>): Promise<AppPassword & { password: string }> {
  const { ctx } = exchange
  if (wanted.name.trim() === '' || wanted.name.length > MAX_NAME_CHARS) throw invalidRequest('The name must not be blank, nor longer than 255 characters')
  const password = base32(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))).replace(/(.{4})(?=.)/g, '$1-')
  const hash = await hashGeneratedPassword(ctx, did, password)
  const made = { ...wanted, createdAt: ctx.clock.now() }
  try {
    await ctx.db.transaction(async (tx) => {
      refuseTakendown(await accountStatus(tx, did))
      if ((await listAppPasswords(tx, did)).length >= MAX_PER_ACCOUNT) throw invalidRequest('The account has as many app passwords as it may have')
      await insertAppPassword(tx, did, made, hash)
      await announceIn(tx, exchange, 'appPasswordMade', did, { name: made.name })
    })
  } catch (error) {
    if (isUniqueViolation(error)) throw invalidRequest(`There is an app password of that name: ${wanted.name}`)
    throw error
  }
  return { ...made, password }
}

/** Remove it with the sessions that it opened. */
export async function revokeAppPassword(exchange: Exchange, did: Did, name: string): Promise<void> {
  const revoked = await exchange.ctx.db.transaction(async (tx) => {
    await deleteSessionsOfAppPassword(tx, did, name)
    return deleteAppPassword(tx, did, name)
  })
  if (revoked > 0) announce(exchange, 'appPasswordRevoked', did)
}

/** Nobody; app passwords are tried in its name where there is no account, so that the work is the same. */
const NOBODY = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' as Did

/** The app password that the text is, and whether it still is one. Only what looks like one is tried. */
export async function matchAppPassword(ctx: Context, did: Did | null, password: string): Promise<{ appPassword: AppPassword; stillHolds: StillHolds } | null> {
  if (!formatPattern.test(password)) return null
  const hash = await hashGeneratedPassword(ctx, did ?? NOBODY, password)
  const appPassword = did && (await findAppPassword(ctx.db, did, { hash }))
  return appPassword && { appPassword, stillHolds: async (tx) => (await findAppPassword(tx, did, { hash })) !== null }
}
