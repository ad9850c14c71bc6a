/** Names that only this server resolves. */
import type { Context } from '../../../platform/context.ts'
import { servedDomain } from '../../../protocol/handle-policy.ts'
import type { Handle } from '../../../protocol/identifiers.ts'

export const isServedHandle = ({ config }: Pick<Context, 'config'>, handle: Handle): boolean =>
  servedDomain(handle, config.availableUserDomains) !== null

/** Whether the name is one of our domains or a name under one of them. Only this server can resolve such a name. */
export const isOwnName = (ctx: Pick<Context, 'config'>, handle: Handle): boolean =>
  isServedHandle(ctx, handle) || ctx.config.availableUserDomains.includes(handle)
