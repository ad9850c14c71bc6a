/** What commands about accounts share: find an account by name, and obtain a new password. */
import { randomBytes } from 'node:crypto'
import { OperatorError } from '../../base/operator-error.ts'
import { base32 } from '../../protocol/cid.ts'
import { type Answer, adminCommand, type OperatorCommand } from '../admin-command.ts'
import { chosenFlag, type Command, type Invocation, Misuse, type Option } from '../command.ts'
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

export const passwordOptions = {
  generate: { doc: 'Generate a password, and print it once.' },
  'password-stdin': { doc: 'Read the password from the next line of standard input.' },
} as const satisfies Record<string, Option>

export const HOW_PASSWORDS_COME = 'Asks for the password twice, unless --generate or --password-stdin is given.'

/**
 * Generate a password, read one from standard input, or ask for one twice, as the options say.
 *
 * `generated` is the password to show to the operator, or null if the operator supplied it. Throws `Misuse` if the
 * options conflict, if no password arrives, if the two entries differ, or if there is no terminal to ask at.
 */
export async function newPassword({
  terminal,
  flags,
}: Invocation): Promise<{ password: string; generated: string | null }> {
  const way = chosenFlag(flags, ['generate', 'password-stdin'])
  if (way === 'generate') {
    const password = generatedPassword()
    return { password, generated: password }
  }
  if (way === 'password-stdin') {
    const password = await terminal.nextLine()
    if (!password) throw new Misuse('there is no password on standard input')
    return { password, generated: null }
  }
  if (!terminal.isInteractive)
    throw new Misuse('there is no terminal to prompt for the password: add --generate or --password-stdin')
  const password = await terminal.ask('Password: ', { hidden: true })
  if (password !== (await terminal.ask('Once more: ', { hidden: true }))) throw new Misuse('the two passwords differ')
  return { password, generated: null }
}

/** 100 random bits in base32, in groups of five characters that are easy to read out. */
const generatedPassword = () =>
  base32(randomBytes(13))
    .slice(0, 20)
    .replace(/.{5}(?=.)/g, '$&-')
