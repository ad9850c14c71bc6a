/** What the commands of a move share: its requests to the new server, and descriptions of the move in words. */
import { OperatorError } from '../../base/operator-error.ts'
import { ZIP_MAGIC } from '../../base/zip-magic.ts'
import type { KeyChanges, MoveView } from '../../features/identity/migration/migration.ts'
import type { SigningKey } from '../../protocol/keys.ts'
import type { UnsignedOperation } from '../../protocol/plc.ts'
import { exitCodes, type ExitCode, type Invocation, type Option, Misuse, type Terminal } from '../command.ts'
import { HolderServer, serverUrl } from '../holder-server.ts'
import { facts, jsonOption, tellResult } from '../report.ts'

/** Time between two requests for the state of a move. */
const LOOK_MILLIS = 1000

export const serverOption = {
  server: { value: 'URL', doc: 'The new server.' },
  ...jsonOption,
} as const satisfies Record<string, Option>

/** The server to which an account moves. */
export class NewServer extends HolderServer {
  /** Returns the move. Throws OperatorError if the account is not moving here. */
  async move(): Promise<MoveView> {
    const { move } = await this.get<{ move: MoveView | null }>('/v1/move-in')
    if (move === null) throw new OperatorError(`the account is not moving to ${this.url}`)
    return move
  }

  async answer(input: object): Promise<MoveView> {
    return (await this.post<{ move: MoveView }>('/v1/move-in/answer', input)).move
  }

  /** Upload the CAR file of the repository, or the archive of a whole account. */
  async uploadArchive(path: string): Promise<void> {
    const file = Bun.file(path)
    const isZip = (await file.slice(0, ZIP_MAGIC.length).text()) === ZIP_MAGIC
    await this.upload('/v1/move-in/archive', file, isZip ? 'application/zip' : 'application/vnd.ipld.car')
  }
}

/** Returns the server that the options name. Throws `Misuse` if they name none. */
export const newServer = async (invocation: Invocation): Promise<NewServer> =>
  new NewServer(await serverUrl(invocation))

/** Wait until the holder has to act, or the move has ended. Prints each stage that begins. */
export async function follow(terminal: Terminal, server: NewServer): Promise<MoveView> {
  const { progressOf, shownStages } = await import('../../features/identity/migration/migration.ts')
  let said: string | null = null
  let fault: string | null = null
  for (;;) {
    const move = await server.move()
    const stage = progressOf(move).find(({ state }) => state === 'now')
    const now = stage === undefined ? null : shownStages[stage.name]
    if (now !== said && now !== null) terminal.err(`${now} …`)
    if (move.fault !== fault && move.fault !== null && move.needs === null) terminal.err(move.fault)
    ;[said, fault] = [now, move.fault]
    if (move.needs !== null || move.stage === 'done') return move
    await terminal.pause(LOOK_MILLIS)
  }
}

/** Print a move in the format that the options ask for. */
export async function tellMove(invocation: Invocation, move: MoveView): Promise<void> {
  const { needWords } = await import('../../features/identity/migration/migration.ts')
  const { did, handle, host, stage, needs, fault, records, blobs, keys, agreement, document } = move
  const text = facts({
    account: `${handle ?? did}${handle === null ? '' : ` (${did})`}`,
    'old server': host,
    state: stage === 'done' ? 'moved' : stage,
    records,
    blobs: `${blobs.stored} of ${blobs.expected}${blobs.lost > 0 ? `, ${blobs.lost} lost at the old server` : ''}`,
    fault,
    'your turn': needs === null ? null : needWords[needs],
    'signing key': document?.signingKey,
    'service endpoint': document?.serviceEndpoint,
    agreement,
  })
  tellResult(invocation, move, keys === null ? text : `${text}\n${await keyLines(keys)}`)
}

/** Describes for people which rotation keys stay and which go. */
async function keyLines({ stay, go }: KeyChanges): Promise<string> {
  const { ownerWords } = await import('../../features/identity/migration/migration.ts')
  const lines = (keys: KeyChanges['stay']) =>
    keys.length === 0 ? ['  none'] : keys.map(({ key, owner }) => `  ${key}  ${ownerWords[owner]}`)
  return ['Keys that stay:', ...lines(stay), 'Keys that go:', ...lines(go)].join('\n')
}

/** Print which keys stay and go, on standard error: standard output is for the result. */
export async function tellKeys({ terminal, flags }: Invocation, keys: KeyChanges): Promise<void> {
  terminal.err(flags.has('json') ? JSON.stringify({ keys }) : await keyLines(keys))
}

export const keyOptions = {
  'keep-key': { value: 'KEYS', doc: 'Rotation keys of yours to keep, separated by commas.' },
  'drop-key': { value: 'KEYS', doc: 'Rotation keys to remove although they are believed to be yours.' },
} as const satisfies Record<string, Option>

/** Returns the keys that the options keep; undefined if they do not say. Throws `Misuse` for keys not shown. */
export function keptKeys({ options }: Invocation, { stay, go }: KeyChanges): string[] | undefined {
  const listOf = (name: keyof typeof keyOptions): string[] => options[name]?.split(',').map((key) => key.trim()) ?? []
  const [keep, drop] = [listOf('keep-key'), listOf('drop-key')]
  if (keep.length + drop.length === 0) return undefined
  const choices = [...stay, ...go].filter(({ isChoice }) => isChoice).map(({ key }) => key)
  for (const key of [...keep, ...drop])
    if (!choices.includes(key)) throw new Misuse(`${key} is not among the keys that may stay or go`)
  const kept = new Set(stay.filter(({ isChoice }) => isChoice).map(({ key }) => key))
  return [...kept.union(new Set(keep)).difference(new Set(drop))]
}

export const signerOptions = {
  key: { value: 'FILE', doc: 'Sign the change of the identity with the secret key in this file, without a code.' },
  wallet: { value: 'FILE', doc: 'Sign it with the key of this wallet. See "holdfast wallet".' },
} as const satisfies Record<string, Option>

/** Signs the change of the identity in place of the old server. */
export interface Signer {
  key: SigningKey
  /** Called once the account is at the new server. */
  moved(server: NewServer, move: MoveView): Promise<void>
}

/** Returns the signer that the options name, or null if they name none. Throws OperatorError if a file holds no key. */
export async function signerOf(invocation: Invocation): Promise<Signer | null> {
  const { terminal, options } = invocation
  const { key, wallet: path } = options
  if (key !== undefined && path !== undefined) throw new Misuse('--key and --wallet cannot be used together')
  if (key !== undefined) return { key: await keyIn(terminal, key), moved: () => Promise.resolve() }
  if (path === undefined) return null
  const { openWallet } = await import('../wallet/wallet-command.ts')
  const wallet = await openWallet({ ...invocation, options: { ...options, file: path } })
  return {
    key: wallet.deviceKey,
    async moved({ url }, { did, handle }) {
      if (wallet.contents.did === did) await wallet.update({ server: url, handle, session: null, walletSession: null })
    },
  }
}

async function keyIn(terminal: Terminal, path: string): Promise<SigningKey> {
  const { parseSecretMultikey } = await import('../../protocol/secret-multikey.ts')
  const key = parseSecretMultikey((terminal.readFile(path) ?? '').trim())
  if (key === null) throw new OperatorError(`${path} holds no secret key (a text that begins with z)`)
  return key
}

/** Sign the operation that the move needs. Throws OperatorError if it is not the one that the holder agreed to. */
export async function signWith(server: NewServer, { key }: Signer, agreement: string): Promise<void> {
  const { operation } = await server.move()
  if (operation === null) throw new OperatorError('the move is not waiting for a signature')
  await server.answer({ operation: await signAgreed(operation, agreement, key) })
}

/** Sign an operation if it says what the holder was shown. */
export async function signAgreed(
  operation: UnsignedOperation,
  agreement: string | null,
  key: SigningKey,
): Promise<object> {
  const { signAgreed: sign } = await import('../../protocol/plc.ts')
  const signed = sign(operation, agreement, key)
  if (signed === null)
    throw new OperatorError('the identity would change in another way than was shown: check its keys again')
  return signed
}

/** Print the move, and notify the signer if the move has ended. Returns the exit status. */
export async function conclude(
  invocation: Invocation,
  server: NewServer,
  { move, signer }: { move: MoveView; signer: Signer | null },
): Promise<ExitCode> {
  await tellMove(invocation, move)
  if (move.stage !== 'done') return exitCodes.failed
  await signer?.moved(server, move)
  return exitCodes.ok
}
