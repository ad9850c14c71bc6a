/** Decides on the sign-in of an app that waits for this wallet. */
import { OperatorError } from '../base/operator-error.ts'
import { BASE_SCOPE } from '../protocol/scopes.ts'
import { consentEnvelope } from '../protocol/signed-envelope.ts'
import { NoAnswer, textOf } from '../base/server-request.ts'
import type { Wallet } from './wallet.ts'

/** A pending request. The app chose its own name. */
export interface WaitingRequest {
  requestId: string
  clientId: string
  clientName: string | null
  redirectUri: string
  /** Where the request came from, and the address that sent it. */
  origin: string | null
  ip: string | null
  requestedScope: readonly string[]
  loginHint: string | null
  /** The page in the browser shows a number that the decision has to repeat. */
  matchRequired: boolean
}

const requestIdForm = /^poauth_[A-Za-z0-9_-]{8,128}$/

/**
 * Reads the reference that a person enters: the code on the page (`ABCD-1234`), the id of the request, or the link in
 * the QR code. Throws OperatorError for anything else.
 */
export function requestReference(text: string): { user_code: string } | { request_id: string } {
  const typed = text.trim()
  const link = /^(?:obsign|org\.obsign\.identitywallet):\/consent\?/.test(typed)
    ? URL.parse(typed)?.searchParams.get('request_id')
    : null
  const id = link ?? typed
  if (requestIdForm.test(id)) return { request_id: id }
  const code = typed.replace(/[-\s]/g, '').toUpperCase()
  if (/^[A-Z0-9]{8}$/.test(code)) return { user_code: `${code.slice(0, 4)}-${code.slice(4)}` }
  throw new OperatorError(`"${text}" is neither the code of a sign-in page, such as ABCD-1234, nor its link`)
}

export async function waitingRequest(
  wallet: Wallet,
  reference: ReturnType<typeof requestReference>,
): Promise<WaitingRequest> {
  await wallet.server.need('walletConsent', 'sign-ins that a wallet approves')
  const answer = await wallet.server.get('/oauth/authorize/consent-request', { query: reference })
  const textOrNull = (name: string) => (typeof answer[name] === 'string' ? answer[name] : null)
  const requestedScope = answer['requestedScope']
  if (
    !Array.isArray(requestedScope) ||
    !requestedScope.every((scope) => typeof scope === 'string' && /^\S+$/.test(scope))
  )
    throw new NoAnswer('the server does not say which permissions the app requests')
  const requestId = textOf(answer, 'requestId')
  if ('request_id' in reference && requestId !== reference.request_id)
    throw new NoAnswer('the server returned another request')
  return {
    requestId,
    clientId: textOf(answer, 'clientId'),
    clientName: textOrNull('clientName'),
    redirectUri: textOf(answer, 'redirectUri'),
    origin: textOrNull('origin'),
    ip: textOrNull('ip'),
    requestedScope,
    loginHint: textOrNull('loginHint'),
    matchRequired: answer['matchRequired'] === true,
  }
}

/** The scope text to sign: the requested scopes in their order, without the refused ones. */
export const grantedScopeOf = ({ requestedScope }: WaitingRequest, refused: ReadonlySet<string>): string =>
  requestedScope.filter((scope) => scope === BASE_SCOPE || !refused.has(scope)).join(' ')

export type Decision = { decision: 'approve'; grantedScope: string; matchCode: string | null } | { decision: 'deny' }

/**
 * Sign the decision and send it. Throws ServerRefusal: 403 for a wrong match code, after which it may be tried again.
 */
export async function decide(
  wallet: Wallet,
  { requestId, clientId }: WaitingRequest,
  decided: Decision,
): Promise<void> {
  const { decision } = decided
  const { grantedScope, matchCode } = decided.decision === 'approve' ? decided : { grantedScope: '', matchCode: null }
  const { did } = wallet
  const proof = await wallet.prove((signer) =>
    consentEnvelope({ ...signer, request: requestId, client: clientId, decision, grantedScope }),
  )
  const json = { did, requestId, decision, grantedScope, ...proof, ...(matchCode === null ? {} : { matchCode }) }
  const answer = await wallet.sendProof(() => wallet.server.post('/oauth/authorize/approve', { json }))
  if (answer['status'] !== { approve: 'approved', deny: 'denied' }[decision] || answer['did'] !== did)
    throw new NoAnswer('the server did not confirm the decision')
}
