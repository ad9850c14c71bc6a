/** Describes a pending sign-in in plain words. */
import type { WaitingRequest } from '../../wallet/wallet-consent.ts'
import { facts, inOneLine } from '../report.ts'

/** The app's own name, for a question. */
export const appNameOf = ({ clientName, clientId }: ShownRequest): string => inOneLine(clientName ?? clientId)

export type ShownRequest = WaitingRequest

/** `server`: address of the wallet's server, which makes the request when a browser signs in to its account page. */
export async function requestText(request: ShownRequest, server: string): Promise<string> {
  const { clientId, clientName, redirectUri, origin, ip, loginHint } = request
  const effect = clientId === server ? ACCOUNT_PAGE : await permissionsText(request)
  return `${facts({
    app: clientName === clientId ? null : clientName,
    address: clientId,
    'redirects to': redirectUri,
    'requested on': origin,
    'requested from': ip,
    'requested for': loginHint,
  })}\n\n${effect}\n\nApprove it only if you have just begun this sign-in yourself.`
}

const ACCOUNT_PAGE =
  'This is not an app: approving it signs that browser in to your account page, where it can manage your account.'

async function permissionsText({ requestedScope }: ShownRequest): Promise<string> {
  const { wordsInEnglish } = await import('../../features/access/scope-words/scope-words.ts')
  const scopes = requestedScope.map((scope) => {
    const { what, more, isGrave } = wordsInEnglish({ scope, grants: [scope], title: null, detail: null })
    const named = inOneLine(what === scope ? scope : `${what} (${scope})`)
    return `  ${isGrave ? '!' : '-'} ${named}${more === '' ? '' : `\n    ${more}`}`
  })
  return `The app requests permission to:\n${scopes.join('\n')}`
}
