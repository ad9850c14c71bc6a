import { OperatorError } from '../../base/operator-error.ts'
import { adminCommand } from '../admin-command.ts'
import { HOW_PASSWORDS_COME, newPassword, newPasswordOptions } from '../prompts.ts'
import { describedServer, findAccount, fullHandle, nameOf } from './operator-accounts.ts'
import type { Server } from '../operator-server.ts'
import { facts } from '../report.ts'

interface Made {
  did: string
  handle: string
  refreshJwt: string
}

export const accountCreateCommand = adminCommand({
  summary: 'Create an account, even if sign-up requires an invite code.',
  parameters: ['<handle>', '<address>'],
  details: `A handle without a dot gets the server's first domain.
${HOW_PASSWORDS_COME}`,
  options: newPasswordOptions,
  async run(invocation) {
    const { terminal, server, positionals } = invocation
    const [name = '', email = ''] = positionals.map((word) => word.trim())
    const { availableUserDomains, inviteCodeRequired } = await describedServer(server)
    const handle = fullHandle(name.replace(/^@/, '').toLowerCase(), availableUserDomains)
    await requireUnusedAddress(server, email)
    const { password, generated } = await newPassword(invocation)
    const make = (inviteCode?: string) =>
      server.postAsHolder<Made>('/xrpc/com.atproto.server.createAccount', { handle, email, password, inviteCode })
    const made = inviteCodeRequired ? await withInvite(server, make) : await make()
    // Sign-up also creates a session, which is not used. The account exists even if deleting that session fails.
    await server
      .postAsHolder('/xrpc/com.atproto.server.deleteSession', undefined, made.refreshJwt)
      .catch((error: Error) =>
        terminal.err(`warning: could not end the session that the new account opened: ${error.message}`),
      )

    const known = { did: made.did, handle: made.handle, email }
    const text = facts({
      handle: made.handle,
      did: made.did,
      address: email,
      password: generated && `${generated} (shown only once)`,
    })
    return { value: generated === null ? known : { ...known, password: generated }, text }
  },
})

/**
 * Throws OperatorError if an account has the address. Sign-up does not reveal whose address it is, so this asks as the
 * operator. Without a credential, sign-up decides alone.
 */
async function requireUnusedAddress(server: Server, email: string): Promise<void> {
  if (!email.includes('@')) return
  const holder = await findAccount(server, email).catch((error: unknown) => {
    if (error instanceof OperatorError) return null
    throw error
  })
  if (holder !== null)
    throw new OperatorError(`${email} belongs to ${nameOf(holder)}: accounts cannot share an address`)
}

/**
 * Run `use` with a new invite code for one account. Disables the code if `use` fails, so that it cannot be used
 * otherwise.
 */
async function withInvite<T>(server: Server, use: (code: string) => Promise<T>): Promise<T> {
  const { code } = await server.post<{ code: string }>('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
  try {
    return await use(code)
  } catch (error) {
    await server.post('/xrpc/com.atproto.admin.disableInviteCodes', { codes: [code] })
    throw error
  }
}
