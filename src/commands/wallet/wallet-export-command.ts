import { resolve } from 'node:path'
import { Misuse } from '../command.ts'
import { openWallet, passphraseFor, walletCommand, workFactor } from './wallet-command.ts'

export const walletExportCommand = walletCommand({
  summary: 'Copy the wallet, for another device or another program.',
  parameters: ['<file>'],
  details: `Encrypts the copy in the age format, with a new passphrase if it prompts for one. "holdfast wallet --file" and the age
tool can open it. With --plain it is readable JSON: anyone who gets the file has the device key, and with it the
identity.`,
  options: { plain: { doc: 'Do not encrypt the copy.' } },
  async run(invocation) {
    const {
      terminal,
      flags,
      positionals: [name = ''],
    } = invocation
    const [{ MIN_PASSPHRASE_CHARS, sealText }, { writePrivately }] = await Promise.all([
      import('../../base/sealed-file.ts'),
      import('../../base/private-file.ts'),
    ])
    const wallet = await openWallet(invocation)
    const text = `${JSON.stringify(wallet.contents, null, 2)}\n`
    const path = resolve(name)
    if (flags.has('plain')) {
      writePrivately(path, text, { replace: false })
      terminal.err(`warning: ${path} holds the keys of the identity, and is not encrypted`)
      return
    }
    const passphrase = await passphraseFor(terminal, { isNew: true, name: 'Passphrase of the copy' })
    if (passphrase.length < MIN_PASSPHRASE_CHARS)
      throw new Misuse(`the passphrase needs at least ${MIN_PASSPHRASE_CHARS} characters`)
    writePrivately(path, await sealText(text, { passphrase, workFactor: await workFactor(terminal) }), {
      replace: false,
    })
    terminal.out(`Copied to ${path}.`)
  },
})
