/** Shared by the commands for sign-ups. */
import { pages } from '../operator-pages.ts'
import type { Server } from '../operator-server.ts'
import { type Invocation, Misuse, type Option } from '../command.ts'

export interface SignUp {
  did: string
  handle: string | null
  emailDomain: string | null
  createdAt: string
  status: string
  role: string | null
  records: number
  blobs: number
  /** Whether the account moved here from another server. */
  arrived: boolean
}

export interface SignUpPage {
  from: string
  until: string
  count: number
  hours: { hour: string; count: number }[]
  burst: number
}

export const PATH = '/v1/admin/sign-ups'

export const windowOptions = {
  from: { value: 'TIME', doc: 'Beginning, such as 2026-11-24T03:00:00Z. Default: an hour before the end.' },
  until: { value: 'TIME', doc: 'End. Default: now.' },
} as const satisfies Record<string, Option>

/**
 * Returns the accounts made in the period of the options. Fixes the end of the period first, so that pages do not
 * shift. Throws `Misuse` for an empty time, for example from an unset variable: the default would mean another period.
 */
export async function signUpsIn(
  server: Server,
  options: Invocation['options'],
): Promise<SignUpPage & { accounts: SignUp[] }> {
  const textOf = (name: string) => {
    if (options[name] === '') throw new Misuse(`--${name} takes a time, such as 2026-11-24T03:00:00Z`)
    return options[name]
  }
  const first = await server.get<SignUpPage>(PATH, { from: textOf('from'), until: textOf('until'), limit: 1 })
  const { from, until } = first
  const accounts = await pages<SignUp>(server, PATH, 'accounts', { from, until })
  return { ...first, accounts }
}
