import { OperatorError } from '../../base/operator-error.ts'
import { chosenFlag, exitCodes, Misuse, type Command, type Invocation } from '../command.ts'
import { whileSignedIn } from '../holder-server.ts'
import { confirm, secret } from '../prompts.ts'
import {
  conclude,
  follow,
  keptKeys,
  keyOptions,
  newServer,
  serverOption,
  signerOf,
  signerOptions,
  signWith,
  tellKeys,
  tellMove,
  type NewServer,
} from './migrate-client.ts'

const acts = ['retry', 'mail', 'sign-in', 'without-old-server'] as const

export const migrateContinueCommand: Command = {
  summary: 'Take the next step of a move that is waiting for you, and follow the move.',
  parameters: ['<handle or DID>'],
  details: `Signs in at the new server with the password that the account has there. "holdfast migrate status" says what the move is
waiting for. Without an option, the command follows the move. It exits with 1 if it is your turn again.

Before the identity is changed, with --code, --key or --wallet, the command shows which of its rotation keys stay and
which go, and asks. A script passes as --agreement what "holdfast migrate status --json" prints beside the keys, so
that nothing else is signed. --keep-key and --drop-key change which keys stay, and show them again.

With --password-stdin the password at the new server is the first line of standard input, and the password at the old
server, for --sign-in, the second.`,
  options: {
    ...serverOption,
    code: { value: 'CODE', doc: 'The code that the old server has mailed to change the identity.' },
    ...signerOptions,
    agreement: { value: 'TEXT', doc: 'The agreement that was printed with the keys. See below.' },
    ...keyOptions,
    yes: { doc: 'Do not ask for confirmation of the keys.' },
    archive: { value: 'FILE', doc: 'Upload the repository from this CAR file.' },
    retry: { doc: 'Retry what failed, and fetch lost blobs again.' },
    mail: { doc: 'Have the old server mail another code.' },
    'sign-in': { doc: 'Sign in at the old server again.' },
    'auth-factor': { value: 'CODE', doc: 'The code of a second factor, for --sign-in.' },
    'without-old-server': { doc: 'Continue without the old server. What it has not sent is lost.' },
    'password-stdin': { doc: 'Read the passwords from standard input, one per line.' },
  },
  async run(invocation) {
    const { terminal, options, flags } = invocation
    const chosen = chosenFlag(flags, acts)
    const { code, archive, key, wallet, 'auth-factor': authFactorToken } = options
    const isChoosing = Object.keys(keyOptions).some((name) => options[name] !== undefined)
    const given = [code, key, wallet, archive, isChoosing || undefined].filter((value) => value !== undefined)
    if (given.length + (chosen === undefined ? 0 : 1) > 1) throw new Misuse('choose one thing at a time')
    const signer = await signerOf(invocation)
    const server = await newServer(invocation)
    return whileSignedIn(invocation, server, async () => {
      if (isChoosing) return choose(invocation, server)
      const agreement = code !== undefined || signer !== null ? await agreed(invocation, server) : ''
      if (code !== undefined) await server.answer({ code, agreement })
      if (signer !== null) await signWith(server, signer, agreement)
      if (archive !== undefined) await server.uploadArchive(archive)
      if (chosen === 'retry') await server.answer({ retry: true })
      if (chosen === 'mail') await server.answer({ mail: true })
      if (chosen === 'without-old-server') await server.answer({ withoutOldServer: true })
      if (chosen === 'sign-in')
        await server.answer({ password: await secret(invocation, 'Password at the old server'), authFactorToken })
      return conclude(invocation, server, { move: await follow(terminal, server), signer })
    })
  },
}

/** Returns what the holder agrees to: the keys as they were shown before, or as they are shown now. */
async function agreed(invocation: Invocation, server: NewServer): Promise<string> {
  const { terminal, options, flags } = invocation
  if (options['agreement'] !== undefined) return options['agreement']
  if (!terminal.isInteractive && !flags.has('yes'))
    throw new Misuse('there is no terminal to confirm the keys at: add --agreement, or --yes')
  const { keys, agreement } = await server.move()
  if (keys === null || agreement === null) throw new OperatorError('the move is not waiting for a signature')
  await tellKeys(invocation, keys)
  await confirm(invocation, 'Type yes to change the identity: ')
  return agreement
}

async function choose(invocation: Invocation, server: NewServer): Promise<typeof exitCodes.failed> {
  const { keys } = await server.move()
  if (keys === null) throw new OperatorError('the move is not waiting for a signature')
  await tellMove(invocation, await server.answer({ keepKeys: keptKeys(invocation, keys) }))
  return exitCodes.failed
}
