/** A waiting sign-in, in plain words. */
import type { WaitingRequest } from '../wallet/wallet-consent.ts'
import { facts } from './report.ts'

export type ShownRequest = WaitingRequest

export async function requestText(request: ShownRequest): Promise<string> {
  const { clientId, clientName, redirectUri, origin, ip, requestedScope, loginHint } = request
  const { wordsOf } = await import('../features/oauth/oauth.ts')
  const scopes = requestedScope.map((scope) => {
    const { what, more, isGrave } = wordsOf({ scope, grants: [scope], title: null, detail: null })
    return `  ${isGrave === true ? '!' : '-'} ${what}${what === scope ? '' : ` (${scope})`}${more === '' ? '' : `\n    ${more}`}`
  })
  return `${facts({
    app: clientName === clientId ? null : clientName,
    address: clientId,
    'redirects to': redirectUri,
    'requested on': origin,
    'requested from': ip,
    'requested for': loginHint,
  })}\n\nThe app asks for permission to:\n${scopes.join('\n')}`
}
