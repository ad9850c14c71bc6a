import { Misuse, type Invocation } from '../command.ts'
import { confirm, yesOption } from '../prompts.ts'
import { identityCommand } from './wallet-command.ts'
import { appNameOf, requestText, type ShownRequest } from './wallet-request.ts'
import type { Wallet } from '../../wallet/wallet.ts'

const REQUEST = '<code or link>'

export const walletApproveCommand = identityCommand({
  summary: 'Approve the sign-in of an app that is waiting for this wallet.',
  parameters: [REQUEST],
  details: `Shows the app, the permissions that it requests and where the request comes from, then asks for your approval.
The sign-in page shows the code; its QR code contains the link. If the page shows a two-digit number, enter it.`,
  options: {
    'match-code': { value: 'NN', doc: 'The number on the page.' },
    without: { value: 'SCOPES', doc: 'Do not grant these scopes (separated by spaces).' },
    ...yesOption,
  },
  async run(invocation) {
    const { wallet, terminal, options } = invocation
    const { decide, grantedScopeOf } = await import('../../wallet/wallet-consent.ts')
    const request = await shown(invocation)
    const refused = new Set(options['without']?.split(/\s+/))
    const unknown = [...refused].find((scope) => !request.requestedScope.includes(scope))
    if (unknown !== undefined) throw new Misuse(`the app does not request ${unknown}`)
    const matchCode = request.matchRequired ? await matchCodeOf(invocation) : null
    await confirm(invocation, `Approve the sign-in of ${appNameOf(request)}? Type yes to continue: `)
    await decide(wallet, request, { decision: 'approve', grantedScope: grantedScopeOf(request, refused), matchCode })
    terminal.out('Approved. The sign-in page continues by itself, or when you press its button.')
  },
})

/** Fetch the request and show it. */
export async function shown({
  wallet,
  terminal,
  positionals: [reference = ''],
}: Invocation & { wallet: Wallet }): Promise<ShownRequest> {
  const { requestReference, waitingRequest } = await import('../../wallet/wallet-consent.ts')
  const request = await waitingRequest(wallet, requestReference(reference))
  terminal.out(await requestText(request, wallet.contents.server))
  return request
}

async function matchCodeOf({ terminal, options }: Invocation): Promise<string> {
  const given = options['match-code']
  if (given !== undefined) return given.trim()
  if (!terminal.isInteractive) throw new Misuse('the page shows a number: add it as --match-code')
  return (await terminal.ask('The number on the page: ')).trim()
}
