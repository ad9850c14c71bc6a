/** Recovery as a wallet goes about it, and what it finds in the holder's mail. */
import { randomBytes } from 'node:crypto'
import { Secret } from '../../../src/base/secret.ts'
import { formatShare, shareEnvelope, type ShareIndex } from '../../../src/protocol/escrow-share.ts'
import { bearer, request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

/** Escrow is offered only under a key that is configured. */
export const withMasterKey = { signingKeyMasterKey: new Secret(new Uint8Array(32).fill(7)) }

/** A share of random content, in its text form. */
export const newShare = (index: ShareIndex = 2, setId = 1): string =>
  formatShare(shareEnvelope({ setId, index, payload: new Uint8Array(randomBytes(32)) }).bytes)

const call = (
  pds: Pick<TestPds, 'url'>,
  method: string,
  path: string,
  json?: unknown,
  headers: Record<string, string> = {},
) => request(`${pds.url}/v1/recovery/${path}`, { method, headers, ...(json === undefined ? {} : { json }) })

export const putShare = (pds: Pick<TestPds, 'url'>, token: string, share: string): Promise<Answer> =>
  call(pds, 'PUT', 'escrow-share', { share }, bearer(token))
export const dropShare = (pds: Pick<TestPds, 'url'>, token: string): Promise<Answer> =>
  call(pds, 'DELETE', 'escrow-share', undefined, bearer(token))
export const cancelRelease = (pds: Pick<TestPds, 'url'>, token: string): Promise<Answer> =>
  call(pds, 'POST', 'release/cancel', undefined, bearer(token))
export const initiate = (
  pds: Pick<TestPds, 'url'>,
  identifier: string,
  otp?: string,
  more: object = {},
): Promise<Answer> => call(pds, 'POST', 'initiate', { identifier, otp, ...more })
export const release = (
  pds: Pick<TestPds, 'url'>,
  identifier: string,
  otp?: string,
  more: object = {},
): Promise<Answer> => call(pds, 'POST', 'release', { identifier, otp, ...more })

/** What is refused, for whatever reason, byte by byte. */
export const REFUSED = {
  status: 401,
  body: { error: { code: 'UNAUTHORIZED', message: 'Unknown account, wrong or expired code, or no open release' } },
}

const codeForm = /^Recovery code:\n([A-Za-z0-9_-]{43})$/m

/** The recovery codes in the mails to an address, oldest first. */
export async function recoveryCodes(pds: Pick<TestPds, 'mails' | 'runSteps'>, to: string): Promise<string[]> {
  await pds.runSteps()
  return pds.mails.filter((mail) => mail.to === to).flatMap(({ text }) => codeForm.exec(text)?.[1] ?? [])
}

/** Asks for a code, and returns it. */
export async function newRecoveryCode(pds: TestPds, { did, email }: { did: string; email: string }): Promise<string> {
  const before = (await recoveryCodes(pds, email)).length
  await initiate(pds, did)
  const codes = await recoveryCodes(pds, email)
  if (codes.length !== before + 1) throw new Error('no code came')
  return codes.at(-1)!
}

/** What the log of an account says, oldest first. */
export const escrowEvents = async (pds: TestPds, did: string): Promise<string[]> =>
  (await pds.rows('escrow_audit', { did })).map(({ event }) => event)
