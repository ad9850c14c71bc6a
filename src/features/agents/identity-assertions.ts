/** Assertions by which identity providers vouch for agents. */
import type { Context } from '../../platform/context.ts'
import { decodeJws } from '../../protocol/jws.ts'

export type VerifiedIdentity =
  | {
      ok: true
      issuer: string
      /** The provider's name for whom the agent acts. */
      subject: string
      /** In lower case; null if the provider does not say, or says that it is not verified. */
      email: string | null
    }
  | { ok: false; status: number; error: 'invalid_grant' | 'issuer_not_enabled' | 'login_required' | 'server_error'; reason: string }

/** The keys of issuers are not fetched or read before the issuer of the token is known to be a trusted one. */
export async function verifyIdentityAssertion({ config }: Context, text: string): Promise<VerifiedIdentity> {
  const issuer = decodeJws(text)?.payload['iss']
  if (typeof issuer !== 'string') return { ok: false, status: 400, error: 'invalid_grant', reason: 'The assertion cannot be read' }
  if (!config.agentAuth.trustedIssuers.some((trusted) => trusted.issuer === issuer))
    return { ok: false, status: 403, error: 'issuer_not_enabled', reason: 'The issuer is not enabled on this server' }
  return { ok: false, status: 401, error: 'invalid_grant', reason: 'The assertion could not be verified' }
}
