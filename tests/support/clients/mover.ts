/** Somebody who moves an account to a server, with the requests of its own interface. */
import type { TestPds } from '../servers/pds.ts'
import { lastCode } from '../servers/mail.ts'
import { PASSWORD, holder, type TestAccount } from './account.ts'
import { bearer, request, type Answer } from './http.ts'

export interface MovedKey {
  key: string
  owner: string
  isChoice: boolean
}

/** What `GET /v1/move-in` says. */
export interface MoveView {
  did: string
  handle: string
  host: string | null
  stage: string
  needs: string | null
  fault: string | null
  records: number
  blobs: { expected: number; stored: number; lost: number }
  mailsCode: boolean
  keys: { stay: MovedKey[]; go: MovedKey[] } | null
  agreement: string | null
  operation: any
  document: any
}

/** Whose account it is, with the password at the old server. */
type Mover = Pick<TestAccount, 'did' | 'password'>

export const plan = (to: Pick<TestPds, 'url'>, from: Mover, input: object = {}): Promise<Answer> =>
  request(`${to.url}/v1/move-in/plan`, { json: { identifier: from.did, password: from.password, ...input } })

/** Begin a move as `<name>.test`. Fails when the answer is not 200. */
export async function begin(
  to: Pick<TestPds, 'url'>,
  from: Mover,
  name: string,
  input: object = {},
): Promise<TestAccount> {
  const planned = await plan(to, from)
  if (planned.status !== 200) throw new Error(`the plan answered ${planned.status} ${JSON.stringify(planned.body)}`)
  const wanted = { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD, ...input }
  const answer = await request(`${to.url}/v1/move-in`, { json: { plan: planned.body.plan, ...wanted } })
  if (answer.status !== 200) throw new Error(`the move answered ${answer.status} ${JSON.stringify(answer.body)}`)
  return holder(to, { ...wanted, ...answer.body })
}

export const answer = (to: Pick<TestPds, 'url'>, { accessJwt }: TestAccount, json: object): Promise<Answer> =>
  request(`${to.url}/v1/move-in/answer`, { json, headers: bearer(accessJwt) })

export async function moveOf(to: Pick<TestPds, 'url'>, { accessJwt }: TestAccount): Promise<MoveView> {
  const { status, body } = await request(`${to.url}/v1/move-in`, { headers: bearer(accessJwt) })
  if (status !== 200) throw new Error(`the move answered ${status} ${JSON.stringify(body)}`)
  return body.move as MoveView
}

/** Give a code for what the move shows of the identity. */
export async function giveCode(to: Pick<TestPds, 'url'>, moving: TestAccount, code: string): Promise<Answer> {
  const { agreement } = await moveOf(to, moving)
  return answer(to, moving, { code, agreement: agreement ?? '' })
}

/** Give the code that the old server has mailed to the address, and let the move end. */
export async function giveMailedCode(to: TestPds, moving: TestAccount, from: Pick<TestPds, 'mails'>, address: string) {
  const given = await giveCode(to, moving, await lastCode(from, address))
  if (given.status !== 200) throw new Error(`the code was answered ${given.status} ${JSON.stringify(given.body)}`)
  await to.runSteps()
}
