/** The operator's credential: `admin_token` as a bearer token under `/v1`, or as the password of `admin`. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Exchange } from '../../http/endpoint.ts'
import { authorizationOf, type Authorization } from './authorization-header.ts'

const USER = 'admin'

/** Whether the request carries the operator's token. Never when none is configured. */
export function carriesAdminToken({ ctx, request, nsid }: Exchange): boolean {
  const authorization = authorizationOf(request)
  const token = ctx.config.adminToken?.reveal()
  if (token === undefined || authorization === null) return false
  const given = passwordOf(authorization) ?? (nsid === null && authorization.scheme === 'bearer' ? authorization.value : null)
  return given !== null && timingSafeEqual(digest(given), digest(token))
}

/** The password may contain colons. */
function passwordOf({ scheme, value }: Authorization): string | null {
  if (scheme !== 'basic') return null
  const pair = Buffer.from(value, 'base64').toString()
  return pair.startsWith(`${USER}:`) ? pair.slice(USER.length + 1) : null
}

const digest = (text: string) => createHash('sha256').update(text).digest()
