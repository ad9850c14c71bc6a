/** Guesses and rate limits on several servers: asking all of them gains nothing. */
import { describe, expect, spyOn, test } from 'bun:test'
import { createAccount, holder, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { openAgentClaim, previewAgent, registerAgent } from '../../support/clients/agent.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { noticesTo } from '../../support/servers/mail.ts'
import { useCluster } from '../../support/cluster-world.ts'
import { until } from '../../support/until.ts'

let names = 0
const { cluster } = useCluster(3, { rateLimit: { enabled: false } })

const newAccount = () => createAccount(cluster.nodes[0]!, `guessed${++names}`)
const signIn = ({ handle }: TestAccount, node: number, password: string) =>
  xrpc(cluster.nodes[node % 3]!, 'com.atproto.server.createSession', { json: { identifier: handle, password } })
const count = (answers: { status: number }[], status: number) =>
  answers.filter((answer) => answer.status === status).length

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

test('failures from elsewhere at all nodes keep the holder out at none, and failures from here at all of them', async () => {
  const account = await newAccount()
  const from = (address: string, node: number, password: string) =>
    xrpc(cluster.nodes[node % 3]!, 'com.atproto.server.createSession', {
      json: { identifier: account.handle, password },
      headers: { 'x-forwarded-for': address },
    })
  const [home, stranger] = ['203.0.113.7', '198.51.100.1']
  expect((await from(home, 0, PASSWORD)).status).toBe(200)
  await until(async () => (await cluster.nodes[0]!.count('known_place', { did: account.did })) === 2)
  for (let i = 0; i < 5; i++) expect((await from(stranger, i, 'wrong')).status).toBe(401)
  for (let i = 0; i < 3; i++) expect((await from(stranger, i, PASSWORD)).status).toBe(429)
  for (let i = 0; i < 3; i++) expect((await from(home, i, PASSWORD)).status).toBe(200)

  cluster.clock.advance({ secs: 61 })
  for (let i = 0; i < 5; i++) expect((await from(home, i, 'wrong')).status).toBe(401)
  for (let i = 0; i < 3; i++) expect((await from(home, i, PASSWORD)).status).toBe(429)
})

describe('a limit of 30 requests', () => {
  const LIMIT = 30
  const { cluster: limited } = useCluster(3, {
    rateLimit: { createSessionPer5min: LIMIT },
    trustedProxies: ['127.0.0.1', '::1'],
  })

  test('by the hour and by the day is open once an hour has gone by in which a point was given back', async () => {
    const { limits } = limited.nodes[0]!.ctx
    const charge = { name: 'unconfirmedAddress', key: 'some address' } as const
    // A node counts for itself until it has met others.
    await limits.meet()
    expect((await limits.chargeShared(charge))?.allowed).toBe(true)
    limits.takeBack(charge)
    limited.clock.advance({ secs: 3601 })
    expect((await limits.chargeShared(charge))?.allowed).toBe(true)
  })

  test('is refused at once, without asking the database, where one of several is spent', async () => {
    const { limits, db } = limited.nodes[0]!.ctx
    await limits.meet()
    const network = '203.0.113.0'
    const from = { address: network, network, provider: network }
    const guess = () => limits.chargeShared({ name: 'transferAcceptTotal', key: 'all', from })
    while ((await guess())!.allowed);
    using asked = spyOn(db.cluster!, 'autocommit')
    expect((await guess())!.allowed).toBe(false)
    expect(asked).not.toHaveBeenCalled()
  })

  let addresses = 0
  let strangers = 0
  const someAddress = () => ({ 'x-forwarded-for': `203.0.113.${++addresses}` })
  const ask = (node: number, headers: Record<string, string>) =>
    xrpc(limited.nodes[node % 3]!, 'com.atproto.server.createSession', {
      json: { identifier: `nobody${++strangers}.test`, password: 'x' },
      headers,
    })
  const letThrough = (answers: { status: number }[]) => answers.length - count(answers, 429)

  test('is one for all nodes, whoever asks them in turn', async () => {
    const headers = someAddress()
    const answers = []
    for (let i = 0; i < 60; i++) answers.push(await ask(i, headers))
    expect(letThrough(answers)).toBeGreaterThanOrEqual(LIMIT)
    expect(letThrough(answers)).toBeLessThanOrEqual(LIMIT * 1.1)
    expect(answers.at(-1)!.headers.get('ratelimit-remaining')).toBe('0')
  })

  test('is one for a storm at all nodes, and none of it is refused for nothing', async () => {
    const headers = someAddress()
    const answers = await Promise.all(Array.from({ length: 90 }, (_, i) => ask(i, headers)))
    expect(letThrough(answers)).toBeGreaterThanOrEqual(LIMIT)
    expect(letThrough(answers)).toBeLessThanOrEqual(LIMIT * 1.1)
  })

  test('is all for whoever asks one node', async () => {
    const headers = someAddress()
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(1, headers)))
    expect(letThrough(answers)).toBe(LIMIT)
    // Another node may let one through before it has heard of them.
    await ask(0, headers)
    expect((await ask(0, headers)).status).toBe(429)
  })

  test('is new when the window has ended, at every node', async () => {
    const headers = someAddress()
    await Promise.all(Array.from({ length: 40 }, (_, i) => ask(i, headers)))
    limited.clock.advance({ secs: 301 })
    for (let i = 0; i < 3; i++) expect((await ask(i, headers)).status).toBe(401)
  })
})

test('a limit is one for nodes that have just started, and have not heard of each other', async () => {
  await using limited = await startCluster(3, { rateLimit: { globalIpPer5min: 200 } })
  const answers = await Promise.all(
    Array.from({ length: 400 }, (_, i) => xrpc(limited.nodes[i % 3]!, 'com.atproto.server.describeServer')),
  )
  expect(count(answers, 200)).toBeGreaterThanOrEqual(200)
  expect(count(answers, 200)).toBeLessThanOrEqual(260)
})

describe('a limit on guesses', () => {
  const LIMIT = 30
  const { cluster: limited } = useCluster(3, {
    rateLimit: { resetPasswordPer5min: LIMIT, agentClaimConfirmPer5min: 100 },
    trustedProxies: ['127.0.0.1', '::1'],
    agentAuth: { anonymousEnabled: true },
  })

  let addresses = 0
  const someAddress = () => ({ 'x-forwarded-for': `203.0.113.${++addresses}` })
  const reset = (node: number, headers: Record<string, string>) =>
    xrpc(limited.nodes[node % 3]!, 'com.atproto.server.resetPassword', {
      json: { token: 'AAAAA-BBBBB', password: 'a new password' },
      headers,
    })

  test('lets no more codes of one address through than one server would, in turn or at once', async () => {
    const [first, second] = [someAddress(), someAddress()]
    const inTurn = []
    for (let i = 0; i < LIMIT + 5; i++) inTurn.push(await reset(i, first))
    expect([count(inTurn, 400), count(inTurn, 429)]).toEqual([LIMIT, 5])
    const atOnce = await Promise.all(Array.from({ length: 3 * LIMIT }, (_, i) => reset(i, second)))
    expect([count(atOnce, 400), count(atOnce, 429)]).toEqual([LIMIT, 2 * LIMIT])
    limited.clock.advance({ secs: 301 })
    expect((await reset(1, first)).status).toBe(400)
  })

  test('lets an account try ten codes of programs, at all nodes at once, and takes nothing for right ones', async () => {
    const account = await createAccount(limited.nodes[0]!, 'asked')
    const { body } = await registerAgent(limited.nodes[1]!, { type: 'anonymous' })
    const { user_code: code } = (await openAgentClaim(limited.nodes[2]!, body.claim_token)).body.claim_attempt
    const preview = (node: number, typed: string) => previewAgent(limited.nodes[node % 3]!, account, typed)
    for (let i = 0; i < 12; i++) expect((await preview(i, code)).status).toBe(200)
    const wrong = code === '000000' ? '000001' : '000000'
    const answers = await Promise.all(Array.from({ length: 25 }, (_, i) => preview(i, wrong)))
    expect([answers.length - count(answers, 429), count(answers, 429)]).toEqual([10, 15])
    expect((await preview(0, code)).status).toBe(429)
  })
})

describe('a limit of 500 points', () => {
  const POINTS = 500
  /** More than a node may take before it has asked the others. */
  const OF_TEN = 30
  let writers = 0
  const { cluster: limited } = useCluster(3, { rateLimit: { writePointsHourly: POINTS } })

  const collection = 'org.example.note'
  const record = { $type: collection, text: 'words' }
  const newWriter = async () => {
    const account = await createAccount(limited.nodes[0]!, `writer${++writers}`)
    return limited.nodes.map((node) => holder(node, account))
  }
  const writeTen = (writer: TestAccount) =>
    writer.call('com.atproto.repo.applyWrites', {
      json: {
        repo: writer.did,
        validate: false,
        writes: Array.from({ length: 10 }, () => ({
          $type: 'com.atproto.repo.applyWrites#create',
          collection,
          value: record,
        })),
      },
    })
  const deleteOne = (writer: TestAccount) =>
    writer.call('com.atproto.repo.deleteRecord', { json: { repo: writer.did, collection, rkey: 'none' } })

  test('is not exceeded by expensive requests at all nodes, and all of it can be had', async () => {
    const writer = await newWriter()
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => writeTen(writer[i % 3]!)))
    const most = Math.floor(POINTS / OF_TEN)
    expect([count(answers, 200), count(answers, 429)]).toEqual([most, 60 - most])
    const refused = answers.find(({ status }) => status === 429)!
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(60)
    // Cheap ones find what is left.
    const cheap = []
    for (let i = 0; i < 60; i++) cheap.push(await deleteOne(writer[i % 3]!))
    expect(count(cheap, 200)).toBeGreaterThanOrEqual(POINTS % OF_TEN)
    expect(count(cheap, 200)).toBeLessThanOrEqual((POINTS % OF_TEN) + POINTS / 10)
  })

  test('is exceeded by a tenth at most where cheap and expensive ones meet', async () => {
    const writer = await newWriter()
    const asked = Array.from({ length: 240 }, async (_, i) =>
      i % 4 === 0
        ? { cost: OF_TEN, ...(await writeTen(writer[i % 3]!)) }
        : { cost: 1, ...(await deleteOne(writer[i % 3]!)) },
    )
    const spent = (await Promise.all(asked))
      .filter(({ status }) => status === 200)
      .reduce((sum, { cost }) => sum + cost, 0)
    expect(spent).toBeGreaterThan(POINTS - OF_TEN)
    expect(spent).toBeLessThanOrEqual(POINTS * 1.1)
  })
})

test('wrong guesses of an operator count at every node', async () => {
  await using limited = await startCluster(2)
  const guess = (node: number) =>
    request(`${limited.nodes[node % 2]!.url}/v1/admin/health`, { headers: bearer(`wrong ${node}`) })
  const answers = []
  for (let i = 0; i < 32; i++) answers.push(await guess(i))
  // One more for each other node, which may not have heard of the last one.
  expect(count(answers, 401)).toBeGreaterThanOrEqual(30)
  expect(count(answers, 401)).toBeLessThanOrEqual(31)
  expect(answers.at(-1)!.status).toBe(429)
})

test('of wrong guesses of an operator that come at once none goes uncounted', async () => {
  await using limited = await startCluster(2)
  const guess = (node: number, token: string) =>
    request(`${limited.nodes[node % 2]!.url}/v1/admin/health`, { headers: bearer(token) })
  const answers = await Promise.all(Array.from({ length: 120 }, (_, i) => guess(i, `wrong ${i}`)))
  expect(count(answers, 401)).toBeLessThanOrEqual(33)
  for (const node of [0, 1]) expect((await guess(node, ADMIN_TOKEN)).status).toBe(429)
})

describe('what no declaration charges', () => {
  // The second node has known of the first from its start.
  const { nodes } = useCluster(2)

  test('is not refused at a node that has only used up its share', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => xrpc(nodes[1], 'com.atproto.server.reserveSigningKey', { json: {} })),
    )
    expect([count(answers, 200), count(answers, 429)]).toEqual([5, 5])
  })

  test('is mailed as often as on one server', async () => {
    const alice = await createAccount(nodes[1], 'alice')
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        alice.call('com.atproto.server.createAppPassword', { json: { name: `app ${i}` } }),
      ),
    )
    expect(count(made, 200)).toBe(8)
    for (const node of nodes) await noticesTo(node, alice.email)
    const mails = nodes.flatMap((node) => node.mails.filter(({ subject }) => subject.startsWith('An app password')))
    expect(mails).toHaveLength(8)
  })
})
