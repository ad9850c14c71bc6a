/** An identity that is a domain of its owner: its ceremony, and having its document published by the server. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { claimCode, forCeremonies } from '../../support/clients/ceremony.ts'
import { WalletUser } from '../../support/clients/wallet-user.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const HOST = 'alice.web.test'
const DID = `did:web:${HOST}`
const { pds, web } = useWorld({ web: [HOST], config: { ...forCeremonies, accounts: { passwordOptional: true } } })
const user = setUp(() => new WalletUser(() => pds.clock.now()))

const hosted = async () => {
  const answer = await fetch(`${pds.url}/.well-known/did.json`, { headers: { host: HOST } })
  return answer.status === 200 ? answer.json() : null
}
let document = ''

test('the document is printed, and nothing is made before it is published as it is', async () => {
  const words = ['create', '--server', pds.url, '--handle', 'alice.test', '--email', 'alice@example.com', '--did', DID]
  const { out, err } = await user.run([...words, '--code', await claimCode(pds)])
  expect(err).toContain(`https://${HOST}/.well-known/did.json`)
  document = out
  expect(JSON.parse(document)).toMatchObject({ id: DID, alsoKnownAs: ['at://alice.test'] })

  expect(await user.run(['create'])).toMatchObject({ code: 1 })
  web.publish(HOST, '/.well-known/did.json', JSON.stringify(JSON.parse(document)))
  expect(await user.run(['create'])).toMatchObject({ code: 1 })
  web.publish(HOST, '/.well-known/did.json', `${document}\n`)
  expect(await user.do(['create'])).toContain(DID)
  expect(await user.contents()).toMatchObject({
    did: DID,
    handle: 'alice.test',
    recoveryKey: null,
    paperShare: null,
    unfinished: null,
  })
  expect(await user.do(['sign-in'])).toContain('as alice.test')
})

test('what only an identity of the directory has is refused in a sentence', async () => {
  for (const words of [['rotate-key'], ['escrow', '--renew'], ['transfer']])
    expect(await user.run(words)).toMatchObject({
      code: 1,
      err: expect.stringContaining('its keys are in the document at its domain'),
    })
})

test('the server publishes the document while it is told to, and the key signs in only while it does not', async () => {
  expect(await hosted()).toBeNull()
  await user.do(['hosting', '--on'])
  expect(await hosted()).toEqual(JSON.parse(document))
  expect((await user.run(['sign-in'])).code).toBe(1)

  const file = join(user.folder, 'did.json')
  const edited = { ...JSON.parse(document), alsoKnownAs: ['at://alice.test', 'https://alice.example'] }
  writeFileSync(file, JSON.stringify(edited))
  await user.do(['hosting', '--document', file])
  expect(await hosted()).toEqual(edited)
  writeFileSync(file, JSON.stringify({ ...edited, id: 'did:web:bank.example' }))
  expect((await user.run(['hosting', '--document', file])).code).toBe(1)
  writeFileSync(file, 'no document')
  expect(await user.run(['hosting', '--document', file])).toMatchObject({
    code: 1,
    err: expect.stringContaining('is not a JSON document'),
  })

  await user.do(['hosting', '--off'])
  expect(await hosted()).toBeNull()
  expect(await user.do(['sign-in'])).toContain('as alice.test')
})
