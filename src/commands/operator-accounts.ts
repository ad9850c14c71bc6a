/** What several commands about accounts do: find the one that is meant, and come by a password. */
import { randomBytes } from 'node:crypto'
import { OperatorError } from '../base/operator-error.ts'
import { base32 } from '../protocol/cid.ts'
import { chosenOption, type Invocation, Misuse, type Option } from './command.ts'
import type { Server } from './operator-server.ts'

export const NAMED_BY = 'The account is named by its handle, DID or address; a handle without a dot has the first domain of the server.'

/** Answer of `/v1/admin/accounts/lookup`. */
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
  invitesDisabled: boolean
  flags: { val: string; labelerDid: string }[]
}

export async function findAccount(server: Server, name: string): Promise<FoundAccount> {
  const given = name.trim().replace(/^@/, '').toLowerCase()
  const account = /[.:@]/.test(given) ? given : fullHandle(given, (await describedServer(server)).availableUserDomains)
  return server.post('/v1/admin/accounts/lookup', { account })
}

export const describedServer = (server: Server): Promise<{ availableUserDomains: string[]; inviteCodeRequired: boolean }> =>
  server.get('/xrpc/com.atproto.server.describeServer')

/** As people say it: the domain may be left out. */
export function fullHandle(name: string, [domain]: readonly string[]): string {
  if (name.includes('.')) return name
  if (domain === undefined) throw new OperatorError('the server has no domain for handles: give the whole handle')
  return `${name}.${domain.replace(/^\./, '')}`
}

/** What an account is called in a sentence. */
export const nameOf = ({ handle, did }: Pick<FoundAccount, 'handle' | 'did'>): string => (handle === null ? did : `${handle} (${did})`)

export const passwordOptions = {
  generate: { doc: 'Make up a password and print it, once.' },
  'password-stdin': { doc: 'Read the password from standard input, its next line.' },
} as const satisfies Record<string, Option>

export const HOW_PASSWORDS_COME = 'The password is asked for twice, unless --generate or --password-stdin says where it comes from.'

/** `generated` is what has to be told to the operator; null for a password that the operator knows. */
export async function newPassword({ terminal, options }: Invocation): Promise<{ password: string; generated: string | null }> {
  const way = chosenOption(options, ['generate', 'password-stdin'])
  if (way === 'generate') {
    const password = generatedPassword()
    return { password, generated: password }
  }
  if (way === 'password-stdin') {
    const password = await terminal.nextLine()
    if (!password) throw new Misuse('no password came on standard input')
    return { password, generated: null }
  }
  if (!terminal.isInteractive) throw new Misuse('nobody can be asked for the password here: add --generate or --password-stdin')
  const password = await terminal.ask('Password: ', { hidden: true })
  if (password !== (await terminal.ask('Once more: ', { hidden: true }))) throw new Misuse('the two passwords differ')
  return { password, generated: null }
}

/** 100 bits, in groups that can be read out. */
const generatedPassword = () =>
  base32(randomBytes(13))
    .slice(0, 20)
    .replace(/.{5}(?=.)/g, '$&-')
