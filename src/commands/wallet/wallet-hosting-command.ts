import { OperatorError } from '../../base/operator-error.ts'
import { chosenFlag, Misuse } from '../command.ts'
import { identityCommand } from './wallet-command.ts'

export const walletHostingCommand = identityCommand({
  summary: 'Make the server publish the document of a did:web.',
  details: `The domain must point to the server. While the document is hosted, the wallet's key cannot open new sessions, because
any session can edit the document. The wallet's existing session still works.`,
  options: {
    on: { doc: 'Publish it.' },
    off: { doc: 'Stop publishing it.' },
    document: { value: 'FILE', doc: 'Publish this document instead.' },
  },
  async run({ terminal, wallet, options, flags }) {
    const { publishDocument, setHosting } = await import('../../wallet/wallet-account.ts')
    const chosen = chosenFlag(flags, ['on', 'off'])
    const file = options['document']
    if (chosen === undefined && file === undefined) throw new Misuse('one of --on, --off and --document is required')
    if (chosen !== undefined) await setHosting(wallet, chosen === 'on')
    if (file !== undefined) await publishDocument(wallet, documentIn(terminal.readFile(file), file))
    terminal.out('Done.')
  },
})

function documentIn(text: string | null, file: string): object {
  try {
    const value: unknown = JSON.parse(text ?? '')
    if (typeof value === 'object' && value !== null) return value
    throw new SyntaxError('not an object')
  } catch (error) {
    throw new OperatorError(`${file} is not a JSON document`, { cause: error })
  }
}
