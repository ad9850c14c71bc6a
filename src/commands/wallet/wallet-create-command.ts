import { OperatorError } from '../../base/operator-error.ts'
import type { Invocation } from '../command.ts'
import { newPasswordIfWanted, wanted } from '../prompts.ts'
import { facts } from '../report.ts'
import { handOutPaper, newWalletOptions, openOrMakeWallet, walletCommand, warnOfDeposit } from './wallet-command.ts'
import type { Wanted } from '../../wallet/wallet-creation.ts'
import type { Wallet } from '../../wallet/wallet.ts'

export const walletCreateCommand = walletCommand({
  summary: 'Create an account whose keys you hold.',
  details: `Creates a key on this device that outranks all other keys of the identity, and a recovery key that is split
into three shares: one stays in the wallet, one goes to the server, and one is printed for you. Two of them restore the
identity.

Unless sign-up is open, the server's operator gives out claim codes or invite codes. With --did did:web:example.com,
your own domain is the identity: the command prints its document; publish it and run the command again. If the command
is interrupted, run it again to continue.`,
  options: {
    ...newWalletOptions,
    handle: { value: 'HANDLE', doc: 'The full handle.' },
    email: { value: 'ADDRESS', doc: 'The email address for codes.' },
    code: { value: 'CODE', doc: 'The claim code. Not needed if sign-up is open, except with --did.' },
    did: { value: 'DID', doc: 'A did:web of your own domain, instead of an identity in the PLC directory.' },
    password: { doc: 'Give the account a password too. Prompts for it twice.' },
    'password-stdin': { doc: 'Read the password from standard input.' },
  },
  async run(invocation) {
    const { beginCreation, finishCreation } = await import('../../wallet/wallet-creation.ts')
    const wallet = await openOrMakeWallet(invocation)
    await changeDirectory(invocation, wallet)
    const password = await newPasswordIfWanted(invocation)
    if (
      wallet.contents.unfinished?.what !== 'creation' ||
      wishOptions.some((name) => invocation.options[name] !== undefined)
    ) {
      requireEmpty(wallet)
      await beginCreation(wallet, await wishes(invocation, wallet), { hasPassword: password !== null })
    }
    const outcome = await finishCreation(wallet, password)
    if (!outcome.done) {
      const { didWebUrl } = await import('../../protocol/did-document.ts')
      invocation.terminal.err(
        `Publish this at ${didWebUrl(wallet.did)?.href}, byte for byte, and run "holdfast wallet create" again:`,
      )
      invocation.terminal.out(outcome.publish.trimEnd())
      return
    }
    const { contents, deviceDid } = wallet
    invocation.terminal.out(
      facts({ handle: contents.handle, did: contents.did, server: contents.server, 'device key': deviceDid }),
    )
    if (outcome.fault !== null) warnOfDeposit(invocation.terminal, outcome.fault)
    await handOutPaper(invocation, wallet)
  },
})

/** Until a ceremony has ended, its directory may be corrected. */
async function changeDirectory({ options: { directory } }: Invocation, wallet: Wallet): Promise<void> {
  if (wallet.contents.unfinished?.what !== 'creation' || directory === undefined) return
  const { serverOrigin } = await import('../../base/server-request.ts')
  await wallet.update({ directory: serverOrigin(directory) })
}

/** A wallet holds one identity. If its ceremony has not ended, the ceremony may be restarted. */
function requireEmpty({ contents: { did, unfinished } }: Wallet): void {
  if (unfinished !== null && unfinished.what !== 'creation')
    throw new OperatorError('this wallet has another step to finish first; name another --file')
  if (did !== null && unfinished === null)
    throw new OperatorError(`this wallet already holds ${did}; name another --file`)
}

const wishOptions = ['handle', 'email', 'code', 'did'] as const

/** Takes missing options from the earlier run, or prompts for them. */
async function wishes(given: Invocation, wallet: Wallet): Promise<Wanted> {
  const { requiresCode } = await import('../../wallet/wallet-creation.ts')
  const options = { ...saidBefore(wallet), ...given.options }
  const { did, code } = options
  const webDid = did?.trim() ?? null
  const needsCode = code !== undefined || (await requiresCode(wallet, webDid))
  const invocation = { ...given, options }
  return {
    handle: (await wanted(invocation, 'handle', 'Handle')).replace(/^@/, '').toLowerCase(),
    email: await wanted(invocation, 'email', 'Email address'),
    claimCode: needsCode ? spelled(await wanted(invocation, 'code', 'Claim code')) : null,
    webDid,
  }
}

function saidBefore({ contents: { unfinished } }: Wallet): Partial<Record<(typeof wishOptions)[number], string>> {
  if (unfinished?.what !== 'creation') return {}
  const { handle, email, claimCode, webDid } = unfinished
  return { handle, email, ...(claimCode !== null && { code: claimCode }), ...(webDid !== null && { did: webDid }) }
}

/** Short codes are upper case; invite codes of another form are used as they are. */
const spelled = (code: string) => (/^[a-z0-9]{6}$/i.test(code) ? code.toUpperCase() : code)
