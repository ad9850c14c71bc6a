/** Addresses that account holders give themselves. Operators may give any. */
import { invalidRequest } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { isThrowAway } from './throw-away-hosts.ts'

/** One refusal for an address that is none and for one of a host that is not wanted. */
export const emailNotSupported = () => invalidRequest('This email address is not supported, please use a different email.')

export async function requireLastingAddress({ config }: Pick<Context, 'config'>, address: string): Promise<void> {
  if (config.accounts.refuseThrowAwayEmail && (await isThrowAway(address))) throw emailNotSupported()
}
