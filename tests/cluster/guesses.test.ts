/** Guesses and rate limits on several servers: asking all of them gains nothing. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../harness/account.ts'
import { startCluster, type TestCluster } from '../harness/cluster.ts'

let cluster: TestCluster
let names = 0
beforeAll(async () => {
  cluster = await startCluster(3, { rateLimit: { enabled: false } })
})
afterAll(() => cluster[Symbol.asyncDispose]())

const newAccount = () => createAccount(cluster.nodes[0]!, `guessed${++names}`)
const signIn = ({ handle }: TestAccount, node: number, password: string) =>
  xrpc(cluster.nodes[node % 3]!, 'com.atproto.server.createSession', { json: { identifier: handle, password } })
const count = (answers: { status: number }[], status: number) => answers.filter((answer) => answer.status === status).length

test('one password after another, each at the next node: five are looked at', async () => {
  const account = await newAccount()
  const answers = []
  for (let i = 0; i < 9; i++) answers.push(await signIn(account, i, `wrong ${i}`))
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 429, 429, 429, 429])
  expect((await signIn(account, 1, PASSWORD)).status).toBe(429)
  cluster.clock.advance({ secs: 61 })
  expect((await signIn(account, 1, PASSWORD)).status).toBe(200)
})

test('thirty passwords at once at all nodes: five are looked at', async () => {
  const account = await newAccount()
  const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => signIn(account, i, `wrong ${i}`)))
  expect(count(answers, 401)).toBe(5)
  expect(count(answers, 429)).toBe(25)
})

test('the right password at all nodes at once signs everybody in, and clears the failures of all', async () => {
  const account = await newAccount()
  for (let i = 0; i < 4; i++) expect((await signIn(account, i, 'wrong')).status).toBe(401)
  expect((await signIn(account, 2, PASSWORD)).status).toBe(200)
  for (let i = 0; i < 4; i++) expect((await signIn(account, i, 'wrong')).status).toBe(401)
  expect((await signIn(account, 0, PASSWORD)).status).toBe(200)
  const answers = await Promise.all(Array.from({ length: 18 }, (_, i) => signIn(account, i, PASSWORD)))
  expect(count(answers, 200)).toBe(18)
})
