/** The page, the wallet and the browser of a consent that is given in a wallet. */
import { latchMatchCode } from '../../../src/features/access/oauth/wallet-consent-store.ts'
import { consentEnvelope, type Signer } from '../../../src/protocol/signed-envelope.ts'
import { request, type Answer } from './http.ts'
import { type OAuthClient } from './oauth-client.ts'
import type { TestPds } from '../servers/pds.ts'
import { proofBy, type DeviceKey, type SigningFor } from './wallet.ts'

/** What a page offers to wallets. */
export interface WalletPath {
  requestId: string
  userCode: string
  /** As it is shown; null if none is. */
  matchCode: string | null
  /** What the QR code holds, as a link. */
  link: string
}

/** Null if the page offers none. */
export function walletPathOf(page: string): WalletPath | null {
  const requestId = /<div id="wallet-path">[^]*? data-request-id="([^"]+)"/.exec(page)?.[1]
  if (requestId === undefined) return null
  return {
    requestId,
    userCode: /class="user-code mono">([^<]+)</.exec(page)![1]!,
    matchCode: /id="match-code">([^<]+)</.exec(page)?.[1] ?? null,
    link: /href="(obsign:[^"]+)"/.exec(page)![1]!.replaceAll('&amp;', '&'),
  }
}

/** Push a request and open its page, as a browser does. Fails if no wallet is offered. */
export async function openConsent(
  app: OAuthClient,
  changes: Record<string, string | undefined> = {},
  headers: Record<string, string> = {},
): Promise<WalletPath & { requestUri: string; clientId: string }> {
  const requestUri = await app.requestUri(changes)
  const { status, body } = await request(app.authorizeUrl(requestUri), { headers })
  const path = walletPathOf(String(body))
  if (path === null) throw new Error(`no wallet is offered: ${status} ${body}`)
  return { ...path, requestUri, clientId: app.clientId }
}

export interface Decider {
  did: string
  device: DeviceKey
}

interface Choice {
  decision?: 'approve' | 'deny'
  grantedScope?: string
  matchCode?: string
  /** What is signed, where it differs from what is asked for. */
  signed?: Partial<Signer> &
    Partial<{ request: string; client: string; decision: 'approve' | 'deny'; grantedScope: string }>
}

/** The body of a decision, signed by the device of its account. */
export function decisionOf(
  pds: SigningFor,
  { did, device }: Decider,
  { requestId, clientId }: { requestId: string; clientId: string },
  {
    decision = 'approve',
    grantedScope = decision === 'deny' ? '' : 'atproto transition:generic',
    matchCode,
    signed = {},
  }: Choice = {},
): Record<string, unknown> {
  const { request: signedRequest = requestId, client = clientId, decision: signedDecision = decision, ...rest } = signed
  const { grantedScope: signedScope = grantedScope, ...signer } = rest
  const envelopeOf = (by: Signer) =>
    consentEnvelope({ ...by, request: signedRequest, client, decision: signedDecision, grantedScope: signedScope })
  const proof = proofBy(pds, device, did, envelopeOf, signer)
  return { did, requestId, decision, grantedScope, ...(matchCode === undefined ? {} : { matchCode }), ...proof }
}

export const sendDecision = (pds: Pick<TestPds, 'url'>, body: unknown): Promise<Answer> =>
  request(`${pds.url}/oauth/authorize/approve`, { json: body })

export const previewOf = (pds: Pick<TestPds, 'url'>, query: Record<string, string>): Promise<Answer> =>
  request(`${pds.url}/oauth/authorize/consent-request?${new URLSearchParams(query)}`)

export const statusOf = (pds: Pick<TestPds, 'url'>, requestId: string): Promise<Answer> =>
  request(`${pds.url}/oauth/authorize/status?${new URLSearchParams({ request_id: requestId })}`)

export const completeConsent = (
  pds: Pick<TestPds, 'url'>,
  requestId: string,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  request(`${pds.url}/oauth/authorize/complete`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams({ request_id: requestId }).toString(),
  })

/** Give a request the match code that devices are told. Returns 0 if it has one. */
export const latch = (pds: Pick<TestPds, 'ctx' | 'clock'>, requestId: string, matchCode: string): Promise<number> =>
  pds.ctx.db.transaction((tx) => latchMatchCode(tx, requestId, matchCode, pds.clock.now()))
