/** A did:web moves in: nobody signs, the holder publishes what the server says. */
import { expect, test } from 'bun:test'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { xrpc } from '../../support/clients/account.ts'
import { answer, begin, moveOf } from '../../support/clients/mover.ts'
import { arrive, method } from '../../support/clients/web-holder.ts'
import { startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

/** The server of the world is the old one. */
const {
  pds: old,
  web,
  dns,
} = useWorld({ web: [], config: { availableUserDomains: ['pds.test'], rateLimit: { enabled: false } } })
const pds = setUp(() => {
  const outbound = createOutbound({
    resolver: dns,
    reach: 'loopback',
    httpsPort: web.port,
    certificateAuthorities: web.authority,
  })
  const config = { availableUserDomains: ['new.test'], rateLimit: { enabled: false } }
  return startPds(config, { resolver: dns, outbound })
})

test('a did:web is asked to publish the key and the address of this server, and is active once it does', async () => {
  const from = await arrive({ pds: old, web, dns }, 'anna.web.test')
  const moving = await begin(pds, from, 'anna', { handle: 'anna.new.test' })
  await pds.runSteps()
  const { needs, document, mailsCode } = await moveOf(pds, moving)
  expect({ needs, mailsCode, endpoint: document.serviceEndpoint }).toEqual({
    needs: 'document',
    mailsCode: false,
    endpoint: pds.url,
  })

  // Before it is published, nothing happens to either account.
  expect((await answer(pds, moving, { retry: true })).status).toBe(200)
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ needs: 'document', fault: expect.any(String) })
  expect((await from.call('com.atproto.server.checkAccountStatus')).body).toMatchObject({ activated: true })

  const late = { collection: 'com.example.note', rkey: 'late' }
  const written = await from.call('com.atproto.repo.createRecord', {
    json: { repo: from.did, ...late, record: { note: 'written while the document was edited' } },
  })
  expect(written.status).toBe(200)
  web.publishDidDocument(from.host, {
    ...from.document,
    alsoKnownAs: ['at://anna.new.test'],
    verificationMethod: [method(from.did, 'atproto', document.signingKey)],
    service: [{ ...from.document.service[0]!, serviceEndpoint: document.serviceEndpoint }],
  })
  expect((await answer(pds, moving, { retry: true })).status).toBe(200)
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', fault: null })
  for (const [server, active] of [
    [pds, true],
    [old, false],
  ] as const)
    expect((await xrpc(server, `com.atproto.sync.getRepoStatus?did=${from.did}`)).body.active).toBe(active)
  const arrived = await xrpc(pds, `com.atproto.repo.getRecord?${new URLSearchParams({ repo: from.did, ...late })}`)
  expect(arrived.body.cid).toBe(written.body.cid)
})

test('what the holder has written here since they activated the account themselves stays', async () => {
  const from = await arrive({ pds: old, web, dns }, 'bea.web.test')
  const moving = await begin(pds, from, 'bea', { handle: 'bea.new.test' })
  await pds.runSteps()
  const { document } = await moveOf(pds, moving)
  web.publishDidDocument(from.host, {
    ...from.document,
    alsoKnownAs: ['at://bea.new.test'],
    verificationMethod: [method(from.did, 'atproto', document.signingKey)],
    service: [{ ...from.document.service[0]!, serviceEndpoint: document.serviceEndpoint }],
  })
  expect((await moving.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
  const own = { collection: 'com.example.note', rkey: 'own' }
  const written = await moving.call('com.atproto.repo.createRecord', {
    json: { repo: from.did, ...own, record: { note: 'written here' } },
  })
  expect(written.status).toBe(200)
  expect((await answer(pds, moving, { retry: true })).status).toBe(200)
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', fault: null })
  const kept = await xrpc(pds, `com.atproto.repo.getRecord?${new URLSearchParams({ repo: from.did, ...own })}`)
  expect(kept.body.cid).toBe(written.body.cid)
})
