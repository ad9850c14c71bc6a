/** Renaming the server for identities of did:web: it changes the documents that it serves, and asks for the others. */
import { expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { arrive, askHost, method, pointAt } from '../../support/clients/web-holder.ts'
import { ADMIN_TOKEN, MASTER_KEY } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const PRESENT = 'https://new.test'

const { pds, web, dns } = useWorld({
  web: [],
  plc: true,
  config: { signingKeyMasterKey: MASTER_KEY, availableUserDomains: ['pds.test'], rateLimit: { enabled: false } },
})

async function rename() {
  const begun = await request(`${pds.url}/v1/admin/host-rename`, {
    headers: bearer(ADMIN_TOKEN),
    json: { url: PRESENT },
  })
  expect(begun.status).toBe(200)
  await pds.runSteps()
  const { body } = await request(`${pds.url}/v1/admin/host-rename`, { headers: bearer(ADMIN_TOKEN) })
  return body.rename
}

test('a document that is served here names the new address, and who publishes one is told to change it', async () => {
  const world = { pds, web, dns }
  const served = await arrive(world, 'served.web.test')
  const hosting = await request(`${pds.url}/v1/did-web/hosting`, {
    headers: bearer(served.accessJwt),
    json: { enabled: true },
  })
  expect(hosting.status).toBe(200)
  pointAt(pds, web, served.host)
  const spaces = {
    verificationMethod: method(served.did, 'atproto_space', served.device.did),
    service: { id: '#atproto_space_host', type: 'AtprotoSpaceHost', serviceEndpoint: 'https://spaces.example.com' },
  }
  const { verificationMethod, service } = served.document
  const document = {
    ...served.document,
    verificationMethod: [...verificationMethod, spaces.verificationMethod],
    service: [...service, spaces.service],
  }
  const edited = await request(`${pds.url}/v1/did-web/document`, {
    headers: bearer(served.accessJwt),
    json: { document },
  })
  expect(edited.status).toBe(200)
  const own = await arrive(world, 'own.web.test')

  await pds.restart({ publicUrl: PRESENT, serverDid: 'did:web:new.test' as Did, formerUrls: [pds.url] })
  expect(await rename()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 1, by_holder: 1 } })
  const [before] = served.document.service
  expect((await askHost(pds, served.host)).body).toEqual({
    ...document,
    service: [{ ...before, serviceEndpoint: PRESENT }, spaces.service],
  })
  const [mail] = pds.mails.filter(({ subject }) => subject.includes('another name'))
  expect(mail!.to).toBe(own.email)
  expect(mail!.text).toContain(PRESENT)
  expect(mail!.text).toContain('In the document that you publish for your did:web')

  const [ownService] = own.document.service
  web.publishDidDocument(own.host, { ...own.document, service: [{ ...ownService!, serviceEndpoint: PRESENT }] })
  expect(await rename()).toMatchObject({ states: { updated: 2 } })
})
