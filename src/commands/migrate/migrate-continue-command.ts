import { chosenOption, Misuse, type Command } from '../command.ts'
import {
  conclude,
  follow,
  secret,
  serverOption,
  signedIn,
  signerOf,
  signerOptions,
  signWith,
} from './migrate-client.ts'

const acts = ['retry', 'mail', 'sign-in', 'without-old-server'] as const

export const migrateContinueCommand: Command = {
  summary: 'Do what a move waits for, and follow it.',
  parameters: ['<handle or DID>'],
  details: `Signs in at the new server with the password that the account has there. "holdfast migrate status" says what the move waits
for. Without an option, the command follows the move. It exits with 1 if it is your turn again.

With --password-stdin the password at the new server is the first line of standard input, and that of the old server, for
--sign-in, the second.`,
  options: {
    ...serverOption,
    code: { value: 'CODE', doc: 'The code that the old server has mailed to change the identity.' },
    ...signerOptions,
    archive: { value: 'FILE', doc: 'Upload the repository from this CAR file.' },
    retry: { doc: 'Try again what failed, and fetch lost blobs again.' },
    mail: { doc: 'Have the old server mail another code.' },
    'sign-in': { doc: 'Sign in at the old server again.' },
    'auth-factor': { value: 'CODE', doc: 'The code of a second factor, for --sign-in.' },
    'without-old-server': { doc: 'Continue without the old server. What it has not given is lost.' },
    'password-stdin': { doc: 'Read the passwords from standard input, one in a line.' },
  },
  async run(invocation) {
    const { terminal, options } = invocation
    const chosen = chosenOption(options, acts)
    const { code, archive, key, wallet, 'auth-factor': authFactorToken } = options
    const given = [code, key, wallet, archive].filter((value) => typeof value === 'string')
    if (given.length + (chosen === undefined ? 0 : 1) > 1) throw new Misuse('only one thing at a time')
    const signer = await signerOf(invocation)
    const server = await signedIn(invocation)
    if (typeof code === 'string') await server.answer({ code })
    if (signer !== null) await signWith(server, signer)
    if (typeof archive === 'string') await server.upload(archive)
    if (chosen === 'retry') await server.answer({ retry: true })
    if (chosen === 'mail') await server.answer({ mail: true })
    if (chosen === 'without-old-server') await server.answer({ withoutOldServer: true })
    if (chosen === 'sign-in')
      await server.answer({ password: await secret(invocation, 'Password at the old server'), authFactorToken })
    return conclude(invocation, server, { move: await follow(terminal, server), signer })
  },
}
