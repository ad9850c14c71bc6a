import { confirm, yesOption } from '../prompts.ts'
import { identityCommand } from './wallet-command.ts'
import { appNameOf } from './wallet-request.ts'
import { shown } from './wallet-approve-command.ts'

export const walletDenyCommand = identityCommand({
  summary: 'Deny the sign-in of an app that is waiting for this wallet.',
  parameters: ['<code or link>'],
  details: 'Shows the request first. A denied request cannot be approved later.',
  options: yesOption,
  async run(invocation) {
    const { decide } = await import('../../wallet/wallet-consent.ts')
    const request = await shown(invocation)
    await confirm(invocation, `Deny the sign-in of ${appNameOf(request)}? Type yes to continue: `)
    await decide(invocation.wallet, request, { decision: 'deny' })
    invocation.terminal.out('Refused.')
  },
})
