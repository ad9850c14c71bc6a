/** A waiting sign-in, in plain words. */
import type { WaitingRequest } from '../wallet/wallet-consent.ts'
import { facts, inOneLine } from './report.ts'

/** What the app calls itself, for a question. */
export const appNameOf = ({ clientName, clientId }: ShownRequest): string => inOneLine(clientName ?? clientId)

export type ShownRequest = WaitingRequest

export async function requestText(request: ShownRequest): Promise<string> {
  const { clientId, clientName, redirectUri, origin, ip, requestedScope, loginHint } = request
  const { wordsOf } = await import('../features/oauth/oauth.ts')
  const scopes = requestedScope.map((scope) => {
    const { what, more, isGrave } = wordsOf({ scope, grants: [scope], title: null, detail: null })
    const named = inOneLine(what === scope ? scope : `${what} (${scope})`)
    return `  ${isGrave === true ? '!' : '-'} ${named}${more === '' ? '' : `\n    ${more}`}`
  })
  return `${facts({
    app: clientName === clientId ? null : clientName,
    address: clientId,
    'redirects to': redirectUri,
    'requested on': origin,
    'requested from': ip,
    'requested for': loginHint,
  })}\n\nThe app asks for permission to:\n${scopes.join('\n')}\n\nApprove it only if you have just begun this sign-in yourself.`
}
