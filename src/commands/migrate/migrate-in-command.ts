import type { MovePlan, MoveView, KeyChanges } from '../../features/identity/migration/migration.ts'
import { Misuse, type Command, type Invocation } from '../command.ts'
import type { Session } from '../holder-server.ts'
import { confirm, secret, wanted } from '../prompts.ts'
import { facts } from '../report.ts'
import {
  follow,
  conclude,
  keptKeys,
  keyOptions,
  newServer,
  serverOption,
  signerOf,
  signerOptions,
  signAgreed,
  signWith,
  tellKeys,
  type NewServer,
  type Signer,
} from './migrate-client.ts'

export const migrateInCommand: Command = {
  summary: 'Move an account from another server to a Holdfast server.',
  parameters: ['<handle or DID>'],
  details: `Run it anywhere: the new server does the work. It signs in at the old server with the password of the account, shows
what will be moved, and takes repository, blobs and preferences. Then the old server mails a code, and the command asks
for it. Until you give the code, the account at the old server is untouched.

The move survives interruptions: run the command again, or "holdfast migrate continue". Without a terminal the command
ends when it is your turn, and exits with 1.

Before the identity is changed, the command shows which of its rotation keys stay and which go: those that the old
server names as its own go. --keep-key keeps one of them if it is yours after all. With --json, the keys are a line of
standard error at the beginning, and part of the result when it is your turn to sign.

Asks for two passwords: the one at the old server, which is passed on and not stored, and a new one. With
--password-stdin they are lines of standard input, in this order.

If a key of yours is among the rotation keys of the identity, such as a key from "holdfast migrate key" or from a wallet,
--key or --wallet signs with it instead of the mailed code. With --archive, such a key takes the place of the old
server: the account comes from a CAR file of the repository, or from the archive that a Holdfast server exported.`,
  options: {
    ...serverOption,
    handle: { value: 'HANDLE', doc: 'The handle at the new server.' },
    email: { value: 'ADDRESS', doc: 'The email address for the new server. Default: the address at the old server.' },
    code: { value: 'CODE', doc: 'An invite code of the new server.' },
    'auth-factor': { value: 'CODE', doc: 'The code of a second factor, if the old server mails one to sign in.' },
    'recovery-key': { value: 'KEY', doc: 'A did:key of yours that may change the identity from then on. Recommended.' },
    ...keyOptions,
    ...signerOptions,
    archive: {
      value: 'FILE',
      doc: 'Take the account from this CAR file or export. The old server is not contacted; requires a key.',
    },
    'password-stdin': { doc: 'Read the passwords from standard input, one per line.' },
    yes: { doc: 'Do not ask for confirmation.' },
  },
  async run(invocation) {
    const { terminal } = invocation
    const server = await newServer(invocation)
    const archive = invocation.options['archive']?.trim()
    const signer = await signerOf(invocation)
    if (archive !== undefined && signer === null) throw new Misuse('--archive needs --key or --wallet')
    const { session, shown } =
      archive === undefined || signer === null
        ? await beginAtOldServer(invocation, server)
        : await beginWithKey(invocation, server, signer)
    server.enter(session)
    try {
      if (archive !== undefined && (await server.move()).needs === 'archive') await server.uploadArchive(archive)
      let move = await follow(terminal, server)
      if (move.needs === 'signature' && (await hasSigned(invocation, server, { move, signer, shown })))
        move = await follow(terminal, server)
      return await conclude(invocation, server, { move, signer })
    } finally {
      await server.logOut(terminal)
    }
  },
}

interface Shown {
  /** The keys as the plan showed them; null if it showed none. */
  shown: KeyChanges | null
}

/** Have the identity changed, unless the holder first has to look at its keys. */
async function hasSigned(
  invocation: Invocation,
  server: NewServer,
  { move, signer, shown }: Shown & { move: MoveView; signer: Signer | null },
): Promise<boolean> {
  const { terminal, flags } = invocation
  const { keys, agreement } = move
  if (keys === null || agreement === null) return false
  if (signer === null) {
    if (!terminal.isInteractive) return false
    await enterCode(invocation, server, move)
    return true
  }
  if (!flags.has('yes') || shown === null || !isAsShown(keys, shown, invocation.options['recovery-key']?.trim())) {
    await tellKeys(invocation, keys)
    if (!terminal.isInteractive) {
      terminal.err('These are not the keys that the plan showed. Sign with "holdfast migrate continue".')
      return false
    }
    await confirm({ ...invocation, flags: new Set() }, 'Type yes to change the identity: ')
  }
  await signWith(server, signer, agreement)
  return true
}

const namesOf = (keys: KeyChanges['stay']) => new Set(keys.map(({ key }) => key))

/** Whether the same keys go, and every key that stays was shown or given. */
function isAsShown(now: KeyChanges, { stay, go }: KeyChanges, recoveryKey: string | undefined): boolean {
  const known = namesOf(stay).union(new Set(recoveryKey === undefined ? [] : [recoveryKey]))
  return namesOf(now.go).symmetricDifference(namesOf(go)).size === 0 && namesOf(now.stay).isSubsetOf(known)
}

const CODE_TRIES = 3

/** Show the keys, and ask for the mailed code. A wrong code may be corrected twice; changed keys are shown again. */
async function enterCode(invocation: Invocation, server: NewServer, first: MoveView): Promise<void> {
  const { terminal } = invocation
  const { ServerRefusal } = await import('../../base/server-request.ts')
  let [shown, { keys, agreement }]: [string | null, Pick<MoveView, 'keys' | 'agreement'>] = [null, first]
  for (let tries = 1; ; tries++) {
    if (shown !== agreement && keys !== null) await tellKeys(invocation, keys)
    shown = agreement
    const code = await terminal.ask('Code that the old server has mailed to you: ')
    try {
      return void (await server.answer({ code: code.trim(), agreement }))
    } catch (error) {
      const isCorrectable = error instanceof ServerRefusal && [400, 409].includes(error.status)
      if (!isCorrectable || tries === CODE_TRIES) throw error
      terminal.err(error.message)
      ;({ keys, agreement } = await server.move())
    }
  }
}

async function beginAtOldServer(invocation: Invocation, server: NewServer): Promise<Shown & { session: Session }> {
  const { flags, options, positionals } = invocation
  const password = await secret(invocation, 'Password at the old server')
  const plan = await planned(invocation, server, {
    identifier: positionals[0]!,
    password,
    authFactorToken: options['auth-factor']?.trim(),
  })
  const keepKeys = plan.keys === null ? undefined : keptKeys(invocation, plan.keys)
  const keys = plan.keys === null || keepKeys === undefined ? plan.keys : chosen(plan.keys, keepKeys)
  if (!flags.has('json')) await tellPlan(invocation, server, plan)
  if (keys !== null) await tellKeys(invocation, keys)
  const handle = await wanted(invocation, 'handle', 'Handle at the new server')
  const email = options['email']?.trim() ?? plan.email
  if (email === null) throw new Misuse('the old server does not reveal the email address: add --email')
  await confirm(invocation, BEGIN)
  const session: Session = await server.post('/v1/move-in', {
    plan: plan.plan,
    handle: handle.replace(/^@/, ''),
    email,
    password: await secret(invocation, 'New password'),
    inviteCode: options['code']?.trim(),
    recoveryKey: options['recovery-key']?.trim(),
    keepKeys,
  })
  return { session, shown: keys }
}

const BEGIN = 'Type yes to begin: '

/** Returns the keys of a plan if these are kept. */
function chosen({ stay, go }: KeyChanges, keepKeys: readonly string[]): KeyChanges {
  const stays = ({ key, isChoice }: KeyChanges['stay'][number]) => keepKeys.includes(key) || !isChoice
  return {
    stay: [...go.filter(({ key }) => keepKeys.includes(key)), ...stay.filter(stays)],
    go: [...stay.filter((key) => !stays(key)), ...go.filter(({ key }) => !keepKeys.includes(key))],
  }
}

/** Returns the plan. Asks for the code of a second factor if the old server requires one. */
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
    terminal.err([title, ...Object.values(lines).map((line) => `  ${line}`)].join('\n'))
}

type Offered = Pick<MoveView, 'agreement'> & { keys: KeyChanges; operation: NonNullable<MoveView['operation']> }

async function beginWithKey(
  invocation: Invocation,
  server: NewServer,
  { key }: Signer,
): Promise<Shown & { session: Session }> {
  const { positionals } = invocation
  const { formatDidKey } = await import('../../protocol/keys.ts')
  const handle = (await wanted(invocation, 'handle', 'Handle at the new server')).replace(/^@/, '')
  const wish = { identifier: positionals[0]!, handle, recoveryKey: formatDidKey(key.publicKey) }
  const first = await server.post<Offered>('/v1/move-in/offer', wish)
  const keepKeys = keptKeys(invocation, first.keys)
  const offer = keepKeys === undefined ? first : await server.post<Offered>('/v1/move-in/offer', { ...wish, keepKeys })
  await tellKeys(invocation, offer.keys)
  const email = await wanted(invocation, 'email', 'Email address')
  await confirm(invocation, BEGIN)
  const session: Session = await server.post('/v1/move-in', {
    ...wish,
    keepKeys,
    operation: await signAgreed(offer.operation, offer.agreement, key),
    email,
    password: await secret(invocation, 'New password'),
    inviteCode: invocation.options['code']?.trim(),
  })
  return { session, shown: offer.keys }
}
