/** What commands about accounts share. */
import { OperatorError } from '../../base/operator-error.ts'
import { type Answer, adminCommand, type OperatorCommand } from '../admin-command.ts'
import type { Command, Invocation } from '../command.ts'
import type { Server } from '../operator-server.ts'

export const NAMED_BY =
  "Name the account by its handle, DID or email address. A handle without a dot gets the server's first domain."

/** Response of `/v1/admin/accounts/lookup`. */
export interface FoundAccount {
  did: string
  handle: string | null
  email: string | null
  emailConfirmedAt: string | null
  createdAt: string
  status: string
  deactivatedAt: string | null
  takedownRef: string | null
  hasPassword: boolean
  furtherHandles: string[]
  /** State of its recovery share: `none`, `held`, or a release that is `pending` or `collectable`. */
  escrow: string
  /** Whether the server serves the document of its did:web. */
  didWebHosting: boolean
  invitesDisabled: boolean
  flags: { val: string; labelerDid: string }[]
  /** The account that created it for a program; null if none did. */
  madeBy: string | null
  /** The accounts that it created for programs. */
  children: { did: string; handle: string | null; status: string }[]
}

/** The account that a command is about. */
export interface AboutAccount {
  server: Server
  account: FoundAccount
  /** The account's path among the endpoints of operators. */
  path: string
}

interface AccountCommand extends Omit<OperatorCommand, 'run'> {
  /** The arguments after the account. `run` gets only these as `positionals`. */
  parameters?: readonly string[]
  run(invocation: Invocation & AboutAccount): Promise<Answer>
}

/** A command about the account that its first argument names. */
export const accountCommand = ({ parameters = [], details, run, ...command }: AccountCommand): Command =>
  adminCommand({
    ...command,
    parameters: ['<account>', ...parameters],
    details: details === '' ? NAMED_BY : `${NAMED_BY}\n\n${details}`,
    async run({ positionals: [name = '', ...positionals], ...invocation }) {
      const account = await findAccount(invocation.server, name)
      const path = `/v1/admin/accounts/${encodeURIComponent(account.did)}`
      return run({ ...invocation, positionals, account, path })
    },
  })

/**
 * Find an account by DID, email address or handle, with or without `@` and domain. Throws OperatorError if there is
 * none.
 */
export async function findAccount(server: Server, name: string): Promise<FoundAccount> {
  return server.post('/v1/admin/accounts/lookup', { account: await fullName(server, name) })
}

/** Returns the DID, email address or whole handle that `name` stands for. */
export async function fullName(server: Server, name: string): Promise<string> {
  const given = name.trim().replace(/^@/, '').toLowerCase()
  return /[.:@]/.test(given) ? given : fullHandle(given, (await describedServer(server)).availableUserDomains)
}

export const describedServer = (
  server: Server,
): Promise<{ availableUserDomains: string[]; inviteCodeRequired: boolean }> =>
  server.get('/xrpc/com.atproto.server.describeServer')

/** Complete a handle without a dot with the server's first domain. Throws OperatorError if the server has no domain. */
export function fullHandle(name: string, [domain]: readonly string[]): string {
  if (name.includes('.')) return name
  if (domain === undefined) throw new OperatorError('the server has no handle domain: give the full handle')
  return `${name}.${domain.replace(/^\./, '')}`
}

/** Name an account in a message: by its handle and DID, or by the DID if it has no handle. */
export const nameOf = ({ handle, did }: Pick<FoundAccount, 'handle' | 'did'>): string =>
  handle === null ? did : `${handle} (${did})`
