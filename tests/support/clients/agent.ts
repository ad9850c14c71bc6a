/** A program that registers and acts for an account, made by hand so that a test can do any one thing wrong. */
import { expect } from 'bun:test'
import { bearer, request, type Answer } from './http.ts'
import type { TestAccount } from './account.ts'
import type { TestPds } from '../servers/pds.ts'

export const CLAIM_GRANT = 'urn:workos:agent-auth:grant-type:claim'
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const POLL_SECS = 5

type Server = Pick<TestPds, 'url'>

export const registerAgent = (pds: Server, json: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  request(`${pds.url}/agent/identity`, { json, headers })

export const openAgentClaim = (pds: Server, claimToken: string, more: object = {}): Promise<Answer> =>
  request(`${pds.url}/agent/identity/claim`, { json: { claim_token: claimToken, ...more } })

export const confirmAgent = (
  pds: Server,
  { accessJwt }: Pick<TestAccount, 'accessJwt'>,
  userCode: string,
  more: object = {},
): Promise<Answer> =>
  request(`${pds.url}/agent/identity/claim/confirm`, {
    json: { user_code: userCode, ...more },
    headers: bearer(accessJwt),
  })

export const previewAgent = (
  pds: Server,
  { accessJwt }: Pick<TestAccount, 'accessJwt'>,
  userCode: string,
): Promise<Answer> => request(`${pds.url}/v1/agents/claim-preview`, { json: { userCode }, headers: bearer(accessJwt) })

/** Post a form to the token endpoint, without a client and without a proof. */
export const tokenGrant = (
  pds: Server,
  grant: string,
  fields: Record<string, string> | [string, string][],
): Promise<Answer> =>
  request(`${pds.url}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams([
      ['grant_type', grant],
      ...(Array.isArray(fields) ? fields : Object.entries(fields)),
    ]).toString(),
  })

export const pollAgent = (pds: Server, claimToken: string): Promise<Answer> =>
  tokenGrant(pds, CLAIM_GRANT, { claim_token: claimToken })

export const exchangeAgent = (pds: Server, assertion: string, more: Record<string, string> = {}): Promise<Answer> =>
  tokenGrant(pds, JWT_BEARER, { assertion, ...more })

export interface ConfirmedAgent {
  registrationId: string
  claimToken: string
  userCode: string
  /** The assertion, to be exchanged for further tokens. */
  assertion: string
  accessToken: string
}

/** From nothing to an access token: an anonymous agent that the account confirms. Fails when any step is refused. */
export async function confirmedAgent(pds: Server, owner: Pick<TestAccount, 'accessJwt'>): Promise<ConfirmedAgent> {
  const { registration_id: registrationId, claim_token: claimToken } = await succeed(
    registerAgent(pds, { type: 'anonymous' }),
  )
  const { user_code: userCode } = (await succeed(openAgentClaim(pds, claimToken))).claim_attempt
  await succeed(confirmAgent(pds, owner, userCode))
  const { access_token: accessToken, identity_assertion: assertion } = await succeed(pollAgent(pds, claimToken))
  return { registrationId, claimToken, userCode, assertion, accessToken }
}

async function succeed(answer: Promise<Answer>): Promise<Answer['body']> {
  const { status, body } = await answer
  expect({ status, body }).toEqual({ status: 200, body })
  return body
}

/** What an operator has to switch on, so that agents may ask for an account and get these scopes. */
export const withClaims = (grantedScopes: string[]) => ({
  anonymousEnabled: true,
  serviceAuthEnabled: true,
  preClaimScopes: ['atproto'],
  grantedScopes,
})
