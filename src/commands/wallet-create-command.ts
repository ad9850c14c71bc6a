import { OperatorError } from '../base/operator-error.ts'
import type { Invocation } from './command.ts'
import { newPassword } from './operator-accounts.ts'
import { facts } from './report.ts'
import { handOutPaper, newWalletOptions, openOrMakeWallet, walletCommand, wanted } from './wallet-command.ts'
import type { Wallet } from '../wallet/wallet.ts'

export const walletCreateCommand = walletCommand({
  name: 'wallet create',
  summary: 'Create an account whose keys you hold.',
  details: `Creates a key on this device that outranks all other keys of the identity, and a recovery key that is split
into three shares: one stays in the wallet, one goes to the server, and one is printed for you. Two of them restore the
identity.

The operator of the server gives out claim codes or invite codes. With --did did:web:example.com the identity is your
own domain: its document is printed; publish it and run the command again. An interrupted command continues when you run
it again.`,
  options: {
    ...newWalletOptions,
    handle: { value: 'HANDLE', doc: 'The full handle.' },
    email: { value: 'ADDRESS', doc: 'The email address for codes.' },
    code: { value: 'CODE', doc: 'The claim code.' },
    did: { value: 'DID', doc: 'A did:web of your own domain, instead of an identity in the PLC directory.' },
    password: { doc: 'Give the account a password too. It is asked for twice.' },
    'password-stdin': { doc: 'Read the password from standard input.' },
  },
  async run(invocation) {
    const { beginCreation, finishCreation } = await import('../wallet/wallet-creation.ts')
    const wallet = await openOrMakeWallet(invocation)
    await changeDirectory(invocation, wallet)
    const password = await passwordOf(invocation)
    if (wallet.contents.unfinished?.what !== 'creation' || typeof invocation.options['code'] === 'string') {
      requireEmpty(wallet)
      await beginCreation(wallet, await wishes(invocation), { hasPassword: password !== null })
    }
    const outcome = await finishCreation(wallet, password)
    if (!outcome.done) {
      const { didWebUrl } = await import('../protocol/did-document.ts')
      invocation.terminal.err(`Publish this at ${didWebUrl(wallet.did)?.href}, byte for byte, and run "holdfast wallet create" again:`)
      invocation.terminal.out(outcome.publish.trimEnd())
      return
    }
    const { contents, deviceDid } = wallet
    invocation.terminal.out(facts({ handle: contents.handle, did: contents.did, server: contents.server, 'device key': deviceDid }))
    await handOutPaper(invocation, wallet)
  },
})

/** The directory of a ceremony that has not ended may be corrected. */
async function changeDirectory({ options: { directory } }: Invocation, wallet: Wallet): Promise<void> {
  if (wallet.contents.unfinished?.what !== 'creation' || typeof directory !== 'string') return
  const { originOf } = await import('../base/server-request.ts')
  await wallet.update({ directory: originOf(directory) })
}

/** A wallet holds one identity. One whose ceremony has not ended may be begun anew. */
function requireEmpty({ contents: { did, unfinished } }: Wallet): void {
  if (unfinished !== null && unfinished.what !== 'creation')
    throw new OperatorError('this wallet is busy with another step; name another --file')
  if (did !== null && unfinished === null) throw new OperatorError(`this wallet holds ${did} already; name another --file`)
}

async function wishes(invocation: Invocation) {
  const { did } = invocation.options
  return {
    handle: (await wanted(invocation, 'handle', 'Handle: ')).replace(/^@/, '').toLowerCase(),
    email: await wanted(invocation, 'email', 'Address for mail: '),
    claimCode: spelled(await wanted(invocation, 'code', 'Claim code: ')),
    webDid: typeof did === 'string' ? did.trim() : null,
  }
}

/** Short codes are in capitals; invite codes of another form are taken as they are. */
const spelled = (code: string) => (/^[a-z0-9]{6}$/i.test(code) ? code.toUpperCase() : code)

async function passwordOf(invocation: Invocation): Promise<string | null> {
  const { options } = invocation
  if (options['password'] !== true && options['password-stdin'] !== true) return null
  return (await newPassword(invocation)).password
}
