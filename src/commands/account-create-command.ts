import { operated } from './operated.ts'
import { describedServer, fullHandle, HOW_PASSWORDS_COME, newPassword, passwordOptions } from './operator-accounts.ts'
import type { Server } from './operator-server.ts'
import { facts } from './report.ts'

interface Made {
  did: string
  handle: string
  refreshJwt: string
}

export const accountCreateCommand = operated({
  name: 'account create',
  summary: 'Create an account, even if sign-up requires an invite code.',
  parameters: ['<handle>', '<address>'],
  details: `A handle without a dot is under the first domain of the server. ${HOW_PASSWORDS_COME}`,
  options: passwordOptions,
  async run(invocation) {
    const { terminal, server, positionals } = invocation
    const [name = '', email = ''] = positionals.map((word) => word.trim())
    const { availableUserDomains, inviteCodeRequired } = await describedServer(server)
    const handle = fullHandle(name.replace(/^@/, '').toLowerCase(), availableUserDomains)
    const { password, generated } = await newPassword(invocation)
    const make = (inviteCode?: string) =>
      server.postAsHolder<Made>('/xrpc/com.atproto.server.createAccount', { handle, email, password, inviteCode })
    const made = inviteCodeRequired ? await withInvite(server, make) : await make()
    // Sign-up also creates a session, which nobody uses. The account exists even if deleting that session fails.
    await server
      .postAsHolder('/xrpc/com.atproto.server.deleteSession', undefined, made.refreshJwt)
      .catch((error: Error) => terminal.err(`warning: a session of the account could not be ended: ${error.message}`))

    const known = { did: made.did, handle: made.handle, email }
    const text = facts({ handle: made.handle, did: made.did, address: email, password: generated && `${generated} (shown only once)` })
    return { value: generated === null ? known : { ...known, password: generated }, text }
  },
})

/** Run `use` with a new invite code for one account. Disables the code if `use` fails, so that nobody else can use it. */
async function withInvite<T>(server: Server, use: (code: string) => Promise<T>): Promise<T> {
  const { code } = await server.post<{ code: string }>('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
  try {
    return await use(code)
  } catch (error) {
    await server.post('/xrpc/com.atproto.admin.disableInviteCodes', { codes: [code] })
    throw error
  }
}
