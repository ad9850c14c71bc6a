import { OperatorError } from '../base/operator-error.ts'
import { chosenOption, Misuse } from './command.ts'
import { identityCommand } from './wallet-command.ts'

export const walletHostingCommand = identityCommand({
  name: 'wallet hosting',
  summary: 'Make the server publish the document of a did:web.',
  details: `The domain has to point to the server. While it is hosted, the key of the wallet does not sign in, because
whoever has a session could edit the document; the session of the wallet still works.`,
  options: {
    on: { doc: 'Publish it.' },
    off: { doc: 'Stop publishing it.' },
    document: { value: 'FILE', doc: 'Replace the published document by this one.' },
  },
  async run({ terminal, wallet, options }) {
    const { publishDocument, setHosting } = await import('../wallet/wallet-account.ts')
    const chosen = chosenOption(options, ['on', 'off'])
    const file = options['document']
    if (chosen === undefined && typeof file !== 'string') throw new Misuse('one of --on, --off and --document is required')
    if (chosen !== undefined) await setHosting(wallet, chosen === 'on')
    if (typeof file === 'string') await publishDocument(wallet, documentIn(terminal.readFile(file), file))
    terminal.out('Done.')
  },
})

function documentIn(text: string | null, file: string): object {
  try {
    const value: unknown = JSON.parse(text ?? '')
    if (typeof value === 'object' && value !== null) return value
    throw new SyntaxError('not an object')
  } catch (error) {
    throw new OperatorError(`${file} holds no JSON document`, { cause: error })
  }
}
