/** Accounts that are taken down while they are at work. */
import { expect, spyOn, test } from 'bun:test'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
let names = 0

const takeDown = ({ did }: TestAccount) =>
  xrpc(pds, 'com.atproto.admin.updateSubjectStatus', {
    headers: basic('admin', ADMIN_TOKEN),
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did }, takedown: { applied: true } },
  })

interface Work {
  /** What a request needs that is made before the takedown. */
  before?(account: TestAccount): Promise<unknown>
  ask(account: TestAccount): Promise<{ status: number; body: unknown }>
}

const works: Record<string, Work> = {
  'a change of handle': {
    ask: (by) => by.call('com.atproto.identity.updateHandle', { json: { handle: `late${++names}.test` } }),
  },
  'an app password': { ask: (by) => by.call('com.atproto.server.createAppPassword', { json: { name: 'late' } }) },
  preferences: { ask: (by) => by.call('app.bsky.actor.putPreferences', { json: { preferences: [] } }) },
  'an upload': {
    ask: (by) =>
      by.call('com.atproto.repo.uploadBlob', {
        method: 'POST',
        body: 'late',
        headers: { 'content-type': 'text/plain' },
      }),
  },
  'a record': {
    ask: (by) =>
      by.call('com.atproto.repo.createRecord', {
        json: { repo: by.did, collection: 'com.example.note', record: { text: 'late' } },
      }),
  },
  'another address': {
    ask: (by) => by.call('com.atproto.server.updateEmail', { json: { email: `late${++names}@example.com` } }),
  },
  'the code of a confirmation': {
    before: (by) => by.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' }),
    ask: async (by) =>
      by.call('com.atproto.server.confirmEmail', {
        json: { email: by.email, token: await lastCode(pds, by.email) },
      }),
  },
}

test.each(Object.keys(works))('%s that is on its way when its account is taken down does not happen', async (name) => {
  using _ = atOneNode(pds, 'a part of the server is replaced')
  const { db } = pds.ctx
  const { transaction, transactionOn } = db
  const { before, ask } = works[name]!
  const account = await createAccount(pds, `user${++names}`)
  await before?.(account)
  using transactions = spyOn(db, 'transaction')
  using others = spyOn(db, 'transactionOn')
  const down = () => {
    transactions.mockRestore()
    others.mockRestore()
    return takeDown(account)
  }
  transactions.mockImplementationOnce((work) => down().then(() => transaction(work)))
  others.mockImplementationOnce((lock, work) => down().then(() => transactionOn(lock, work)))
  expect(await ask(account)).toMatchObject({ status: 401, body: { error: 'AccountTakedown' } })
})
