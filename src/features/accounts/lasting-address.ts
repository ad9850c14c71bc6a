/** Restricts the addresses that account holders may choose. Operators may set any. */
import { invalidRequest } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { isThrowAway } from './throw-away-hosts.ts'

/** The same refusal for an invalid address and for one at an unwanted host. */
export const emailNotSupported = () => invalidRequest('This email address is not supported, please use a different email.')

/** Throws `InvalidRequest` if the address is at a disposable-mail host and the configuration refuses those. */
export async function requireLastingAddress({ config }: Pick<Context, 'config'>, address: string): Promise<void> {
  if (config.accounts.refuseThrowAwayEmail && (await isThrowAway(address))) throw emailNotSupported()
}
