import { identityCommand } from './wallet-command.ts'

export const walletSignInCommand = identityCommand({
  summary: 'Open a session of the account with the key of the wallet.',
  details: `The session has full access, like one opened with the password. It is kept in the wallet. With --print it is printed as
JSON for other programs, and not kept.`,
  options: { print: { doc: 'Print the tokens.' } },
  async run({ terminal, wallet, flags }) {
    const { openSession, signIn } = await import('../../wallet/wallet-sessions.ts')
    const { did } = wallet
    if (flags.has('print')) {
      const { session, handle } = await openSession(wallet)
      return terminal.out(JSON.stringify({ did, handle, ...session }, null, 2))
    }
    await signIn(wallet)
    terminal.out(`Signed in to ${wallet.server.url} as ${wallet.contents.handle ?? did}.`)
  },
})
