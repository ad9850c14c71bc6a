/** Restricts the addresses that account holders may choose. Operators may set any. */
import { invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { isThrowAway } from './throw-away-hosts.ts'

/** The refusal for an invalid address, and for an address at an unwanted host. */
export const emailNotSupported = () =>
  invalidRequest('This email address is not supported, please use a different email.')

/** Whether the address may be used: it is not at a disposable-mail host, or the configuration does not refuse those. */
export const isLastingAddress = async ({ config }: Pick<Context, 'config'>, address: string): Promise<boolean> =>
  !config.accounts.refuseThrowAwayEmail || !(await isThrowAway(address))

/** Throws `InvalidRequest` unless the address may be used. */
export async function requireLastingAddress(ctx: Pick<Context, 'config'>, address: string): Promise<void> {
  if (!(await isLastingAddress(ctx, address))) throw emailNotSupported()
}
