import { OperatorError } from '../../base/operator-error.ts'
import type { MovePlan } from '../../features/identity/migration/migration.ts'
import { Misuse, type Command, type Invocation } from '../command.ts'
import { facts } from '../report.ts'
import {
  follow,
  conclude,
  newServer,
  secret,
  serverOption,
  signerOf,
  signerOptions,
  signWith,
  type NewServer,
  type Session,
  type Signer,
} from './migrate-client.ts'

export const migrateInCommand: Command = {
  summary: 'Move an account from another server to a server of this kind.',
  parameters: ['<handle or DID>'],
  details: `Run it anywhere: the new server does the work. It signs in at the old server with the password of the account, shows what
comes along, and takes repository, blobs and preferences. Then the old server mails a code, for which the command asks.
Until the code is given, the account at the old server is untouched.

The move survives interruptions: run the command again, or "holdfast migrate continue". Without a terminal the command
ends when it is your turn, and exits with 1.

Passwords are asked for: that of the old server, which is passed on and not stored, and a new one. With --password-stdin
they are lines of standard input, in this order.

If a key of yours is among the rotation keys of the identity, such as one of "holdfast migrate key" or that of a wallet,
--key or --wallet signs with it instead of the mailed code. With --archive, such a key takes the place of the old server:
the account comes from a CAR file of the repository, or from the archive that a server of this kind exported.`,
  options: {
    ...serverOption,
    handle: { value: 'HANDLE', doc: 'The handle at the new server.' },
    email: { value: 'ADDRESS', doc: 'The email address for the new server. Default: that at the old server.' },
    code: { value: 'CODE', doc: 'An invite code of the new server.' },
    'auth-factor': { value: 'CODE', doc: 'The code of a second factor, if the old server mails one to sign in.' },
    'recovery-key': { value: 'KEY', doc: 'A did:key of yours that may change the identity from then on. Recommended.' },
    ...signerOptions,
    archive: {
      value: 'FILE',
      doc: 'Take the account from this CAR file or export. The old server is not asked; needs a key.',
    },
    'password-stdin': { doc: 'Read the passwords from standard input, one in a line.' },
    yes: { doc: 'Do not ask for confirmation.' },
  },
  async run(invocation) {
    const { terminal } = invocation
    const server = await newServer(invocation)
    const archive = textOptions(invocation)('archive')
    const signer = await signerOf(invocation)
    if (archive !== undefined && signer === null) throw new Misuse('--archive needs --key or --wallet')
    server.enter(
      archive === undefined || signer === null
        ? await beginAtOldServer(invocation, server)
        : await beginWithKey(invocation, server, signer),
    )
    if (archive !== undefined && (await server.move()).needs === 'archive') await server.upload(archive)
    let move = await follow(terminal, server)
    if (move.needs === 'signature' && (signer !== null || terminal.isInteractive)) {
      if (signer !== null) await signWith(server, signer)
      else await enterCode(terminal, server)
      move = await follow(terminal, server)
    }
    return conclude(invocation, server, { move, signer })
  },
}

const textOptions =
  ({ options }: Invocation) =>
  (name: string): string | undefined => {
    const value = options[name]
    return typeof value === 'string' ? value.trim() : undefined
  }

const CODE_TRIES = 3

/** Ask for the mailed code. A wrong one may be corrected twice. */
async function enterCode(terminal: Invocation['terminal'], server: NewServer): Promise<void> {
  const { ServerRefusal } = await import('../../base/server-request.ts')
  for (let tries = 1; ; tries++) {
    const code = await terminal.ask('Code that the old server has mailed to you: ')
    try {
      return void (await server.answer({ code: code.trim() }))
    } catch (error) {
      if (!(error instanceof ServerRefusal) || error.status !== 400 || tries === CODE_TRIES) throw error
      terminal.err(error.message)
    }
  }
}

async function beginAtOldServer(invocation: Invocation, server: NewServer): Promise<Session> {
  const { options, positionals } = invocation
  const given = textOptions(invocation)
  const password = await secret(invocation, 'Password at the old server')
  const plan = await planned(invocation, server, {
    identifier: positionals[0]!,
    password,
    authFactorToken: given('auth-factor'),
  })
  if (options['json'] !== true) await tellPlan(invocation, server, plan)
  const handle = await required(invocation, 'handle', 'Handle at the new server')
  const email = given('email') ?? plan.email
  if (email === null) throw new Misuse('the old server does not say the email address: add --email')
  await confirm(invocation)
  return server.post('/v1/move-in', {
    plan: plan.plan,
    handle: handle.replace(/^@/, ''),
    email,
    password: await secret(invocation, 'New password'),
    inviteCode: given('code'),
    recoveryKey: given('recovery-key'),
  })
}

/** The plan. Asks for the code of a second factor, if the old server wants one. */
async function planned({ terminal }: Invocation, server: NewServer, request: object): Promise<MovePlan> {
  const { ServerRefusal } = await import('../../base/server-request.ts')
  try {
    return await server.post('/v1/move-in/plan', request)
  } catch (error) {
    const wantsCode = error instanceof ServerRefusal && error.code === 'AuthFactorTokenRequired'
    if (!wantsCode || !terminal.isInteractive) throw error
    const authFactorToken = (await terminal.ask('Sign-in code that the old server has mailed to you: ')).trim()
    return server.post('/v1/move-in/plan', { ...request, authFactorToken })
  }
}

async function tellPlan({ terminal }: Invocation, server: NewServer, plan: MovePlan): Promise<void> {
  const { planWords } = await import('../../features/identity/migration/migration.ts')
  const { did, handle, host, records, blobs } = plan
  terminal.err(facts({ account: handle ?? did, did, from: host, to: new URL(server.url).host, records, blobs }))
  const parts = {
    'Comes along:': planWords.comes,
    'Does not come along:': planWords.stays,
    'The old server:': planWords.oldServer,
  }
  for (const [title, lines] of Object.entries(parts))
    terminal.err([title, ...lines.map((line) => `  ${line}`)].join('\n'))
}

async function beginWithKey(invocation: Invocation, server: NewServer, { key }: Signer): Promise<Session> {
  const { positionals } = invocation
  const given = textOptions(invocation)
  const [{ formatDidKey }, { signOperation }] = await Promise.all([
    import('../../protocol/keys.ts'),
    import('../../protocol/plc.ts'),
  ])
  const handle = (await required(invocation, 'handle', 'Handle at the new server')).replace(/^@/, '')
  const wish = { identifier: positionals[0]!, handle, recoveryKey: formatDidKey(key.publicKey) }
  const { operation } = await server.post<{ operation: Parameters<typeof signOperation>[0] }>('/v1/move-in/offer', wish)
  const email = await required(invocation, 'email', 'Email address')
  await confirm(invocation)
  return server.post('/v1/move-in', {
    ...wish,
    operation: signOperation(operation, key),
    email,
    password: await secret(invocation, 'New password'),
    inviteCode: given('code'),
  })
}

async function required(invocation: Invocation, option: string, question: string): Promise<string> {
  const given = textOptions(invocation)(option)
  if (given !== undefined) return given
  if (!invocation.terminal.isInteractive) throw new Misuse(`there is no terminal to prompt at: add --${option}`)
  return (await invocation.terminal.ask(`${question}: `)).trim()
}

async function confirm({ terminal, options }: Invocation): Promise<void> {
  if (options['yes'] === true) return
  if (!terminal.isInteractive) throw new Misuse('there is no terminal to confirm at: add --yes')
  if ((await terminal.ask('Type yes to begin: ')).trim().toLowerCase() !== 'yes')
    throw new OperatorError('not confirmed; nothing was done')
}
