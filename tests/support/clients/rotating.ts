/** An account whose wallet replaces the key of its repository, and what others then find. */
import { readCarWithRoot, verifyRepoCar } from '@atproto/repo'
import { deviceKey } from './wallet.ts'
import type { LogOperation, Operation, PlcState } from '../../../src/protocol/plc.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import type { TestAccount } from './account.ts'
import { bearer, request, type Answer } from './http.ts'

type Device = ReturnType<typeof deviceKey>

/** What a wallet needs to know: where the server and the directory are, whose wallet it is, and its key. */
export interface Wallet {
  pds: { url: string }
  directory: { url: string }
  account: TestAccount
  device: Device
}

const post = ({ pds, account }: Wallet, path: string, json?: object): Promise<Answer> =>
  request(`${pds.url}${path}`, { method: 'POST', json, headers: bearer(account.accessJwt) })

export const begin = (wallet: Wallet): Promise<Answer> => post(wallet, '/v1/repo-keys/rotation')
export const complete = (wallet: Wallet, operation: unknown): Promise<Answer> =>
  post(wallet, '/v1/repo-keys/rotation/complete', { operation })

/** Begin a rotation. Returns the staged key. */
export async function stagedKey(wallet: Wallet): Promise<string> {
  const { status, body } = await begin(wallet)
  if (status !== 200) throw new Error(`the rotation was refused: ${status} ${JSON.stringify(body)}`)
  return body.signingKey
}

export async function lastOperation({
  directory,
  account: { did },
}: Pick<Wallet, 'directory' | 'account'>): Promise<LogOperation> {
  return (await request(`${directory.url}/${did}/log/last`)).body
}

/** The key that the directory names. */
export const namedKey = async (wallet: Wallet): Promise<string> =>
  ((await lastOperation(wallet)) as Operation).verificationMethods['atproto']!

/**
 * The operation that publishes a staged key in place of the present one, signed by the wallet. `changes` go in besides.
 */
export async function publishing(wallet: Wallet, staged: string, changes: Partial<PlcState> = {}): Promise<Operation> {
  const last = (await lastOperation(wallet)) as Operation
  const before = last.verificationMethods['atproto']
  const rotationKeys = [...last.rotationKeys.filter((key) => key !== before), staged]
  const verificationMethods = { ...last.verificationMethods, atproto: staged }
  return signOperation(nextOperation(last, { rotationKeys, verificationMethods, ...changes })!, wallet.device.key)
}

/** Publish an operation past the server. */
export async function publish(
  { directory, account: { did } }: Pick<Wallet, 'directory' | 'account'>,
  operation: LogOperation,
): Promise<void> {
  const { status, body } = await request(`${directory.url}/${did}`, { json: operation })
  if (status !== 200) throw new Error(`the directory refused: ${status} ${JSON.stringify(body)}`)
}

export const write = ({ account }: Wallet, text: string): Promise<Answer> =>
  account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note', text } },
  })

/**
 * How many records others find in the repository, whose signature they check by the key that the directory names.
 * Throws if it is not right.
 */
export async function verifiedRecords(wallet: Wallet): Promise<number> {
  const { did } = wallet.account
  const response = await fetch(`${wallet.pds.url}/xrpc/com.atproto.sync.getRepo?did=${did}`)
  const car = new Uint8Array(await response.arrayBuffer())
  const { creates } = await verifyRepoCar(car, did, await namedKey(wallet))
  if ((await readCarWithRoot(car)).root === undefined) throw new Error('no root')
  return creates.length
}
