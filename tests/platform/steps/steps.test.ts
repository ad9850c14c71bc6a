/** Durable steps: mail and requests to be crawled, with the other side away, slow, or refusing. */
import { expect, test } from 'bun:test'
import { checks, examine } from '../../../src/features/operations/doctor/doctor.ts'
import type { Database, Sql, Tx } from '../../../src/platform/database/database.ts'
import { Metrics } from '../../../src/platform/running/metrics.ts'
import { StepPostponed, StepRunner, type StepKind, waitMillis } from '../../../src/platform/running/steps.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { StillClock, TestClock } from '../../support/clock.ts'
import { startCrawler } from '../../support/servers/crawler.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { startMailbox, type Received } from '../../support/clients/mailbox.ts'
import { ADMIN_TOKEN, freePort, startPds, type TestPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { atOneNode } from '../../support/turns.ts'

const codeLine = /^([A-Z2-7]{5}-[A-Z2-7]{5})\r?$/m
const codeIn = ({ source }: Received) => codeLine.exec(source)![1]!
const messageId = ({ source }: Received) => /^Message-ID: (.*)\r$/im.exec(source)![1]!

/** A server whose mail goes to a port, where at first nobody listens. */
async function withMailAt(port: number, smtpTimeoutSecs = 15, clock = new TestClock()): Promise<TestPds> {
  return startPds(
    {
      rateLimit: { enabled: false },
      email: {
        provider: 'smtp',
        from: 'pds@example.org',
        smtpHost: 'localhost',
        smtpPort: port,
        smtpTls: 'none',
        smtpTimeoutSecs,
        httpTimeoutSecs: smtpTimeoutSecs,
      },
    },
    { mailer: undefined, clock },
  )
}

const operator = bearer(ADMIN_TOKEN)
const stepsOf = async (pds: TestPds, query = '') =>
  (await request(`${pds.url}/v1/admin/steps${query}`, { headers: operator })).body
const kindOf = async (pds: TestPds, kind: string) =>
  (await stepsOf(pds)).kinds.find((one: { kind: string }) => one.kind === kind)
const requestReset = (pds: TestPds, email: string) =>
  xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email } })
const reset = (pds: TestPds, token: string, password: string) =>
  xrpc(pds, 'com.atproto.server.resetPassword', { json: { token, password } })
const sendEmail = (pds: TestPds, recipientDid: string, content: string) =>
  xrpc(pds, 'com.atproto.admin.sendEmail', {
    headers: basic('admin', ADMIN_TOKEN),
    json: { recipientDid, senderDid: recipientDid, content },
  })
const doctorOn = ({ ctx, clock }: TestPds) =>
  examine(
    checks.find(({ name }) => name === 'steps')!,
    { ...ctx, now: () => clock.now() },
  )
const payloads = (pds: TestPds) => pds.rows('step', {}, ['payload_wrapped'])

test('a code that the mail server could not take is told to whoever waits, and arrives when the mail server is back', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port)
  const ann = await createAccount(pds, 'ann')
  expect(await ann.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).toMatchObject({
    status: 503,
    body: { error: 'ServiceUnavailable' },
  })
  expect(await kindOf(pds, 'mail')).toMatchObject({
    waiting: 1,
    failed: 0,
    oldestAt: expect.any(String),
    nextAt: expect.any(String),
    lastError: expect.stringContaining('ECONNREFUSED'),
  })

  await using box = await startMailbox({ tls: 'none', port })
  await pds.runSteps()
  expect(box.received).toEqual([])
  pds.clock.advance({ secs: 6 })
  await pds.runSteps()
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 0, failed: 0, oldestAt: null, lastError: null })
  expect(
    await ann.call('com.atproto.server.confirmEmail', { json: { email: ann.email, token: codeIn(box.received[0]!) } }),
  ).toMatchObject({
    status: 200,
  })
})

test('a password reset is answered when it is written down, whatever the mail server does', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port)
  await using box = await startMailbox({ tls: 'none', port })
  const ann = await createAccount(pds, 'ann')
  const { promise, resolve } = Promise.withResolvers<void>()
  box.held = promise
  const arriving = box.next()
  expect((await requestReset(pds, ann.email)).status).toBe(200)
  const mail = await arriving
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 1 })
  resolve()
  await pds.runSteps()
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 0 })
  expect((await reset(pds, codeIn(mail), 'a new password')).status).toBe(200)
})

test('the same is written for an address with an account and for one without', async () => {
  await using pds = await startPds({ rateLimit: { enabled: false } })
  using _ = atOneNode(pds, 'each node counts for itself')
  const ann = await createAccount(pds, 'ann')
  await pds.runSteps()
  const written = async (email: string) => {
    await pds.ctx.steps.stop()
    const { statements, rows } = pds.ctx.db.counters
    expect((await requestReset(pds, email)).status).toBe(200)
    const after = pds.ctx.db.counters
    return [after.statements - statements, after.rows - rows]
  }
  expect(await written(ann.email)).toEqual(await written('nobody@example.com'))
})

test('of many requests for one code the last mail is sent, and while the mail server is away one is kept', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port)
  const ann = await createAccount(pds, 'ann')
  for (let i = 0; i < 5; i++) {
    await requestReset(pds, ann.email)
    await pds.runSteps()
  }
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 1 })
  expect(await kindOf(pds, 'password-reset')).toMatchObject({ waiting: 0 })
  await using box = await startMailbox({ tls: 'none', port })
  pds.clock.advance({ secs: 6 })
  await pds.runSteps()
  expect(box.received).toHaveLength(1)
  expect((await reset(pds, codeIn(box.received[0]!), 'a new password')).status).toBe(200)
})

test('a code that is void is not mailed any more: too old, replaced with the address, or of an account that is gone', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port)
  const [old, moved, gone] = [
    await createAccount(pds, 'olaf'),
    await createAccount(pds, 'moved'),
    await createAccount(pds, 'gone'),
  ]
  await requestReset(pds, old.email)
  await pds.runSteps()
  pds.clock.advance({ secs: 14 * 60 })
  for (const { email } of [moved, gone]) await requestReset(pds, email)
  await pds.runSteps()
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 3 })

  expect(
    await moved.call('com.atproto.server.updateEmail', { json: { email: 'elsewhere@example.com' } }),
  ).toMatchObject({ status: 200 })
  expect(
    await xrpc(pds, 'com.atproto.admin.deleteAccount', {
      headers: basic('admin', ADMIN_TOKEN),
      json: { did: gone.did },
    }),
  ).toMatchObject({ status: 200 })
  await using box = await startMailbox({ tls: 'none', port })
  pds.clock.advance({ days: 7 })
  await pds.runSteps()
  expect(box.received.filter(({ source }) => codeLine.test(source))).toEqual([])
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 0, failed: 0 })
})

test('a mail is tried for days, then stays for the operator, who retries or drops it', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port)
  const ann = await createAccount(pds, 'ann')
  const begun = pds.clock.now()
  for (const content of ['Hello Ann', 'Goodbye Ann', 'Goodbye Ann'])
    expect((await sendEmail(pds, ann.did, content)).status).toBe(503)
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 2 })
  for (let tries = 0; (await kindOf(pds, 'mail')).waiting > 0; tries++) {
    expect(tries).toBeLessThan(40)
    pds.clock.advance({ secs: 4 * 3600 })
    await pds.runSteps()
  }
  expect(pds.clock.now() - begun).toBeGreaterThan(3 * 86_400_000)
  const { steps } = await stepsOf(pds, '?kind=mail')
  expect(steps).toEqual(
    [0, 1].map(() =>
      expect.objectContaining({
        kind: 'mail',
        did: ann.did,
        status: 'failed',
        dueAt: null,
        lastError: expect.stringContaining('ECONNREFUSED'),
      }),
    ),
  )
  expect((await request(`${pds.url}/v1/admin/health`, { headers: operator })).body.steps).toEqual({
    waiting: 0,
    failed: 2,
    oldestAgeSeconds: null,
  })
  const { body: metrics } = await request(`${pds.url}/metrics`, { headers: operator })
  for (const line of ['steps_failed{kind="mail"} 2', 'steps_waiting{kind="crawl"} 0']) expect(metrics).toContain(line)

  await using box = await startMailbox({ tls: 'none', port })
  const [kept, given] = steps
  const tell = (what: string, json: object) => request(`${pds.url}/v1/admin/steps/${what}`, { headers: operator, json })
  expect(await tell('drop', { id: given.id })).toMatchObject({ status: 200, body: { dropped: 1 } })
  expect(await tell('drop', { id: given.id })).toMatchObject({ status: 404 })
  expect(await tell('drop', { id: kept.id, kind: 'mail' })).toMatchObject({ status: 400 })
  expect(await tell('retry', { kind: 'mail' })).toMatchObject({ status: 200, body: { retried: 1 } })
  await pds.runSteps()
  expect(box.received).toMatchObject([{ to: [ann.email], source: expect.stringContaining('Hello Ann') }])
  expect(await tell('retry', { kind: 'mail' })).toMatchObject({ body: { retried: 0 } })
  const { body: audit } = await request(`${pds.url}/v1/admin/audit`, { headers: operator })
  expect(audit.events.map(({ action, subject }: { action: string; subject: string }) => [action, subject])).toEqual([
    ['steps_retried', 'mail'],
    ['steps_dropped', given.id],
    ...Array.from({ length: 3 }, () => ['email_sent', ann.did]),
  ])
})

test('what an operator left undone for a month is forgotten', async () => {
  await using pds = await startPds(
    {},
    { mailer: { check: async () => null, send: () => Promise.reject(new Error('no route to host')) } },
  )
  const ann = await createAccount(pds, 'ann')
  await sendEmail(pds, ann.did, 'Hello')
  await pds.damage('step', {}, { due_at: null })
  expect(await pds.runSweep('steps')).toEqual({ deleted: 0 })
  pds.clock.advance({ days: 31 })
  expect(await pds.runSweep('steps')).toEqual({ deleted: 1 })
})

test('a mail that is refused is not sent again', async () => {
  await using box = await startMailbox({ tls: 'none', unknown: ['ann@example.com'] })
  await using pds = await withMailAt(box.port)
  const ann = await createAccount(pds, 'ann')
  expect((await sendEmail(pds, ann.did, 'Hello')).status).toBe(400)
  expect(await kindOf(pds, 'mail')).toMatchObject({ waiting: 0, failed: 1, lastError: expect.stringContaining('550') })
})

test('no code and no address stands in the rows, or in what operators see', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port)
  const ann = await createAccount(pds, 'ann')
  await requestReset(pds, ann.email)
  await pds.runSteps()
  const [{ payload_wrapped: wrapped }] = (await payloads(pds)) as [{ payload_wrapped: string }]
  const code = codeLine.exec(
    (JSON.parse(Buffer.from(pds.ctx.vault.unwrap(wrapped)).toString()) as { mail: { text: string } }).mail.text,
  )![1]!
  const rows = JSON.stringify(await pds.rows('step'))
  const shown = JSON.stringify(await stepsOf(pds))
  for (const text of [rows, shown]) {
    expect(text).not.toContain(code)
    expect(text).not.toContain(ann.email)
  }
})

test('a mail that is slow keeps only whoever waits for it, and no longer than its time-out', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port, 1)
  await using box = await startMailbox({ tls: 'none', port })
  const ann = await createAccount(pds, 'ann')
  const { promise, resolve } = Promise.withResolvers<void>()
  box.held = promise
  expect((await ann.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).status).toBe(503)
  resolve()
  await pds.runSteps()
})

test('whoever waits for a mail that cannot be sent yet waits no longer than there is an account', async () => {
  const port = await freePort()
  await using pds = await withMailAt(port, 30)
  await using box = await startMailbox({ tls: 'none', port })
  const ann = await createAccount(pds, 'ann')
  const { promise, resolve } = Promise.withResolvers<void>()
  box.held = promise
  // As many as two nodes send at a time.
  for (let i = 0; i < 8; i++) {
    const { email } = await createAccount(pds, `before${i}`)
    expect((await requestReset(pds, email)).status).toBe(200)
  }
  await until(async () => (await pds.count('step', { kind: 'mail' })) === 8)
  const asked = ann.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  await until(async () => (await pds.count('step', { did: ann.did })) === 1)
  const headers = basic('admin', ADMIN_TOKEN)
  expect((await xrpc(pds, 'com.atproto.admin.deleteAccount', { json: { did: ann.did }, headers })).status).toBe(200)
  expect((await asked).status).toBe(200)
  resolve()
  await pds.runSteps()
  expect(box.received.filter(({ to }) => to.includes(ann.email))).toEqual([])
})

test('a crawler that is away is asked again when it is back, with no event in between', async () => {
  await using crawler = startCrawler()
  crawler.statuses.push(503, 503, 503, 503, 503, 503)
  await using pds = await startPds(
    { crawlers: { urls: [crawler.url] }, publicUrl: 'https://pds.example.com' },
    { alone: 'a node knows what it has asked itself' },
  )
  await crawler.until(3)
  const waiting = async () =>
    pds.ctx.steps.summaries().then((kinds) => kinds.find(({ kind }) => kind === 'crawl')!.waiting)
  await until(async () => (await waiting()) > 0)
  await pds.restart()
  await crawler.until(6)
  expect(await waiting()).toBe(1)
  // A restart asks anyway; that is what finishes the step.
  await pds.restart()
  await crawler.until(7)
  pds.clock.advance({ secs: 61 })
  await pds.runSteps()
  expect(crawler.requests).toHaveLength(7)
  expect(await waiting()).toBe(0)
})

test('an event adds nothing to the steps', async () => {
  await using pds = await startPds()
  const ann = await createAccount(pds, 'ann')
  await ann.call('com.atproto.repo.createRecord', {
    json: { repo: ann.did, collection: 'org.example.note', record: { text: 'written' } },
  })
  expect(await pds.rows('step', {}, ['id'])).toEqual([])
})

const counted = (taken: string[], changes: Partial<StepKind<string>> = {}): StepKind<string> => ({
  name: 'counted',
  concurrency: 2,
  maxSteps: 3,
  maxTries: 2,
  firstWaitSecs: 10,
  maxWaitSecs: 100,
  async take(_ctx, { payload }) {
    taken.push(payload)
  },
  ...changes,
})
const runnerOn = (pds: TestPds, kind: StepKind<string>) =>
  new StepRunner({ ...pds.ctx, metrics: new Metrics() }, [kind])
const addAll = async (
  pds: TestPds,
  runner: StepRunner,
  kind: StepKind<string>,
  keys: string[],
  did: Did | null = null,
) => {
  for (const key of keys) {
    await pds.ctx.db.transaction((tx) => runner.add(tx, kind, { key, did, payload: key }))
    pds.clock.advance({ secs: 1 })
  }
}

test('a look that finds nothing takes one statement, however many kinds there are', async () => {
  await using pds = await startPds()
  const statements: unknown[] = []
  const { all, get, transactionOn } = pds.ctx.db
  const db = {
    ...pds.ctx.db,
    all: (query: Sql) => (statements.push(query), all(query)),
    get: (query: Sql) => (statements.push(query), get(query)),
    transactionOn: (...given: Parameters<typeof transactionOn>) => (statements.push(given), transactionOn(...given)),
  } as Database
  const taken: string[] = []
  const kinds = Array.from({ length: 10 }, (_, i) => counted(taken, { name: `kind-${i}` }))
  const runner = new StepRunner({ ...pds.ctx, db, metrics: new Metrics() }, kinds)
  await runner.start()
  await runner.workOff()
  statements.length = 0
  await runner.workOff()
  expect(statements).toHaveLength(1)
  await addAll(pds, runner, kinds[7]!, ['a'])
  await runner.workOff()
  expect(taken).toEqual(['a'])
  await runner.stop()
})

test('of a kind only the newest are kept', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = counted(taken)
  const runner = runnerOn(pds, kind)
  await addAll(pds, runner, kind, ['a', 'b', 'c', 'd', 'e'])
  await runner.start()
  await runner.workOff()
  expect(taken.toSorted()).toEqual(['c', 'd', 'e'])
  await runner.stop()
})

test('two that work on one database take each step once, and what one leaves the other takes when its time is over', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = counted(taken, { maxSteps: 100 })
  const keys = Array.from({ length: 20 }, (_, i) => String(i))
  const [one, other] = [runnerOn(pds, kind), runnerOn(pds, kind)]
  await addAll(pds, one, kind, keys)
  await Promise.all([one.start(), other.start()])
  await Promise.all([one.workOff(), other.workOff()])
  expect(taken.toSorted()).toEqual(keys.toSorted())

  await pds.ctx.db.transaction((tx) => one.add(tx, kind, { key: 'left', payload: 'left', waitSecs: 5 }))
  await pds.damage('step', {}, { due_at: 0, taken_until: pds.clock.now() + 60_000 })
  await other.workOff()
  expect(taken).not.toContain('left')
  pds.clock.advance({ secs: 61 })
  await other.workOff()
  expect(taken.at(-1)).toBe('left')
  await Promise.all([one.stop(), other.stop()])
})

test('what is due far ahead because the clock was ahead is done', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = counted(taken)
  const runner = runnerOn(pds, kind)
  pds.clock.jump({ days: 400 })
  await addAll(pds, runner, kind, ['a'])
  pds.clock.jump({ days: -400 })
  await runner.start()
  await runner.workOff()
  expect(taken).toEqual(['a'])
  await runner.stop()
})

/** Notes each try, all of which fail. */
const failing = (taken: string[]) =>
  counted(taken, {
    maxTries: null,
    async take(_ctx, { payload }) {
      taken.push(payload)
      throw new Error('no')
    },
  })

test('what failed while the clock was an hour ahead is tried again soon after the clock was set back', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = failing(taken)
  const runner = runnerOn(pds, kind)
  pds.clock.jump({ secs: 3600 })
  await addAll(pds, runner, kind, ['a'])
  await runner.start()
  await runner.workOff()
  expect(taken).toEqual(['a'])
  pds.clock.jump({ secs: -3600 })
  await runner.workOff()
  expect(taken).toEqual(['a', 'a'])
  // From then on it waits as usual.
  await runner.workOff()
  expect(taken).toEqual(['a', 'a'])
  await runner.stop()
})

test('what was added while the clock was an hour ahead, and not tried then, is tried soon after the clock was set back', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = failing(taken)
  const runner = runnerOn(pds, kind)
  pds.clock.jump({ secs: 3600 })
  await addAll(pds, runner, kind, ['a'])
  pds.clock.jump({ secs: -3600 })
  await runner.start()
  await runner.workOff()
  expect(taken).toEqual(['a'])
  // From then on it waits as usual, though it was added in the future.
  await runner.workOff()
  expect(taken).toEqual(['a'])
  await runner.stop()
})

test('in order, one that cannot be done yet keeps those after it waiting, and is not counted as a failure', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  let isAway = true
  const kind = counted(taken, {
    concurrency: 1,
    inOrder: true,
    maxSteps: 100,
    async take(_ctx, { payload }) {
      taken.push(payload)
      // Intervals on the monotonic clock have parts of a millisecond, which PostgreSQL does not store as an integer.
      if (isAway) throw new StepPostponed('away', 30_000.5)
    },
  })
  const runner = runnerOn(pds, kind)
  await addAll(pds, runner, kind, ['a', 'b', 'c'])
  await runner.start()
  await runner.workOff()
  pds.clock.advance({ secs: 31 })
  await addAll(pds, runner, kind, ['d'])
  await runner.workOff()
  expect(taken).toEqual(['a', 'a'])
  const [first, second] = await pds.rows('step')
  expect(first).toMatchObject({ key: 'a', tries: 0, last_error: 'away' })
  expect(second).toMatchObject({ key: 'b', tries: 0, last_error: null })
  expect(Number.isInteger(first!.due_at)).toBe(true)
  expect(pds.log.filter(({ message }) => message.startsWith('step failed'))).toEqual([])

  isAway = false
  pds.clock.advance({ secs: 31 })
  await runner.workOff()
  expect(taken).toEqual(['a', 'a', 'a', 'b', 'c', 'd'])
  await runner.stop()
})

test('in order, one that has failed for good is left out, and a failure is waited for', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = counted(taken, {
    concurrency: 1,
    inOrder: true,
    async take(_ctx, { payload }) {
      taken.push(payload)
      if (payload === 'bad') throw new Error('no')
    },
  })
  const runner = runnerOn(pds, kind)
  await addAll(pds, runner, kind, ['bad', 'good'])
  await runner.start()
  await runner.workOff()
  expect(taken).toEqual(['bad'])
  pds.clock.advance({ secs: 11 })
  await runner.workOff()
  expect(taken).toEqual(['bad', 'bad', 'good'])
  expect(await pds.rows('step', {}, ['key', 'tries'])).toEqual([{ key: 'bad', tries: 2 }])
  await runner.stop()
})

test('in order, shares that always have a step waiting hold up none of the others', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = counted(taken, {
    concurrency: 1,
    inOrder: true,
    maxSteps: 100,
    async take(ctx, { payload, share, end }) {
      taken.push(payload)
      await ctx.db.transaction(async (tx) => {
        await end(tx)
        if (share !== 'ann' && taken.length < 20) await add(tx, share, `${share} again`)
      })
    },
  })
  const runner = runnerOn(pds, kind)
  const add = (tx: Tx, share: string, key: string) => runner.add(tx, kind, { key, share, payload: key })
  await pds.ctx.db.transaction(async (tx) => {
    for (const key of ['one', 'two', 'three']) await add(tx, 'ann', key)
    for (const share of ['ben', 'cat']) await add(tx, share, share)
  })
  await runner.start()
  await runner.workOff()
  const again = ['ben again', 'cat again']
  expect(taken.slice(0, 9)).toEqual(['one', 'two', 'ben', 'cat', 'three', ...again, ...again])
  await runner.stop()
})

test('in order, a step that replaces another does not lose a turn', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = counted(taken, { concurrency: 1, inOrder: true, maxSteps: 100 })
  const runner = runnerOn(pds, kind)
  await pds.ctx.db.transaction(async (tx) => {
    for (const payload of ['one', 'two', 'three', 'four'])
      await runner.add(tx, kind, { key: payload, share: 'ann', payload })
    for (const payload of ['first', 'second', 'third'])
      await runner.add(tx, kind, { key: 'of ben', share: 'ben', payload })
  })
  await runner.start()
  await runner.workOff()
  expect(taken).toEqual(['one', 'two', 'third', 'three', 'four'])
  await runner.stop()
})

test('several are added in one statement, and the oldest make room', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const kind = counted(taken, { inOrder: true, concurrency: 1 })
  const runner = runnerOn(pds, kind)
  const { db } = pds.ctx
  const steps = Array.from({ length: 20 }, (_, i) => ({ key: String(i), payload: String(i) }))
  let statements = 0
  await db.transaction((tx) => {
    statements = 0
    const counting: Tx = {
      all: (query) => tx.all(query),
      get: (query) => tx.get(query),
      run: (query) => {
        statements++
        return tx.run(query)
      },
      afterCommit: (act) => tx.afterCommit(act),
      turn: () => tx.turn(),
      known: tx.known,
    }
    return runner.addAll(counting, kind, steps)
  })
  expect(statements).toBe(2)
  await runner.start()
  await runner.workOff()
  expect(taken).toEqual(['17', '18', '19'])
  await runner.stop()
})

test('one that is added again while it is done is done again', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  let again = true
  const kind = counted(taken, {
    async take(ctx, { payload, end }) {
      taken.push(payload)
      if (!again) return
      again = false
      await ctx.db.transaction((tx) => runner.add(tx, kind, { key: 'a', payload: 'later' }))
      await ctx.db.transaction(async (tx) => expect(await end(tx)).toBe(false))
    },
  })
  const runner = runnerOn(pds, kind)
  await addAll(pds, runner, kind, ['a'])
  await runner.start()
  await runner.workOff()
  expect(taken).toEqual(['a', 'later'])
  await runner.stop()
})

test('whoever waits for a step is not told how one has ended that it has replaced', async () => {
  await using pds = await startPds()
  const taken: string[] = []
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>()
  const kind = counted(taken, {
    concurrency: 1,
    async take(_ctx, { payload }) {
      taken.push(payload)
      if (payload === 'later') throw new Error('no')
      await isOver
    },
  })
  const runner = runnerOn(pds, kind)
  const add = (payload: string) => pds.ctx.db.transaction((tx) => runner.add(tx, kind, { key: 'a', payload }))
  await runner.start()
  await add('earlier')
  await until(() => taken.length === 1)
  await add('later')
  const told = runner.nextTry(kind, 'a', 60_000)
  end()
  expect(await told).toBe(false)
  expect(taken).toEqual(['earlier', 'later'])
  await runner.stop()
})

test('waits double up to a bound, and differ', () => {
  const kind = { firstWaitSecs: 5, maxWaitSecs: 60 }
  expect([1, 2, 3, 4, 5, 50].map((tries) => waitMillis(kind, tries, 1))).toEqual([
    5000, 10_000, 20_000, 40_000, 60_000, 60_000,
  ])
  expect(waitMillis(kind, 2, 0)).toBe(5000)
})

test('the operator lists, retries and drops steps from the command line, and the doctor tells of those that fail', async () => {
  const port = await freePort()
  // Nothing is tried again by itself, however long the commands take.
  await using pds = await withMailAt(port, undefined, new StillClock())
  const run = (...words: string[]) =>
    runProgram(['step', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  const ann = await createAccount(pds, 'ann')
  await sendEmail(pds, ann.did, 'Hello')
  await sendEmail(pds, ann.did, 'Hello again')
  expect((await run('list')).out).toMatch(
    /^KIND +WAITING +FAILED +OLDEST +NEXT TRY +LAST ERROR\n(?:.*\n)*mail +2 +0 +\S+ \S+ +\S+ \S+ +.*ECONNREFUSED/,
  )
  expect(await doctorOn(pds)).toMatchObject({ state: 'ok' })
  pds.clock.advance({ secs: 3600 })
  expect(await doctorOn(pds)).toMatchObject({
    state: 'warning',
    text: expect.stringMatching(/^mail: 2 waiting, for up to 1 hours \(.*ECONNREFUSED/),
  })
  const listed = JSON.parse((await run('list', 'mail', '--json')).out) as { id: string }[]
  expect(listed).toMatchObject([{ kind: 'mail', status: 'waiting', tries: expect.any(Number) }, { kind: 'mail' }])
  expect(await run('drop', listed[1]!.id)).toMatchObject({ code: 0, out: '1 step dropped.\n' })
  // The other one is due by now, and fails once more.
  await pds.runSteps()
  await using box = await startMailbox({ tls: 'none', port })
  const arriving = box.next()
  expect(await run('retry', 'mail')).toMatchObject({ code: 0, out: '1 step will be retried now.\n' })
  expect((await arriving).source).toContain('Hello')
  await pds.runSteps()
  expect(await doctorOn(pds)).toMatchObject({ state: 'ok' })
  expect(await run('retry', 'nothing')).toMatchObject({ code: 1, err: expect.stringContaining('the kinds are') })
  expect(messageId(box.received[0]!)).toBe(`<${listed[0]!.id}@example.org>`)
})
