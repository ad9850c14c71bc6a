/** The guide by which people move their accounts, followed word for word at a terminal. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, setDefaultTimeout, test } from 'bun:test'
import type { Operation } from '../../../src/protocol/plc.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { lastOperation } from '../../support/clients/rotating.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startMachine, type Answers, type Typed } from './machine.ts'

setDefaultTimeout(120_000)

const NEW = 'another long enough password'
const INTERRUPTED = 130
/** It is the turn of a person, or of the other server. */
const WAITING = 1
const here = (name: string) => `${name}.pds.example.com`
const passwordHere: Answers = [['Password at', `${NEW}\r`]]

test('the guide to moving an account moves people in, one of them without the old server, and one away', async () => {
  await using machine = await startMachine({ isReachable: true })
  machine.configure('SERVICE_INVITE_CODE_REQUIRED=false')
  await machine.run('systemctl restart holdfast')
  await using old = await startPds({ plcDirectoryUrl: machine.plcUrl, rateLimit: { enabled: false } })
  const recoveryKey = (await machine.run('holdfast migrate key recovery.key')).trim()
  const directory = { url: machine.plcUrl }
  const own = deviceKey()
  const anna = await createAccount(old, 'anna')
  const bob = await createAccount(old, 'bob')
  const carol = await createAccount(old, 'carol', { recoveryKey: own.did })
  const dora = await createAccount(old, 'dora', { recoveryKey })
  const erin = await createAccount(machine, 'erin', { handle: here('erin'), recoveryKey: own.did })
  const car = await fetch(`${old.url}/xrpc/com.atproto.sync.getRepo?did=${dora.did}`)
  writeFileSync(join(machine.root, 'alice.car'), await car.bytes())

  /** Stops at the question for the code. */
  const beginning = (name: string): Answers => [
    ['Password at the old server', `${PASSWORD}\r`],
    ['Handle at the new server', `${here(name)}\r`],
    ['Type yes', 'yes\r'],
    ['New password', `${NEW}\r`],
    ['has mailed to you', '\x03'],
  ]
  const begin = async (account: TestAccount, name: string) => {
    const ended = await machine.type(`holdfast migrate in ${account.did} --server ${machine.url}`, beginning(name))
    expect(ended).toMatchObject({ code: INTERRUPTED })
  }
  const typed = (name: string, answers: Answers, more: Partial<Typed> = {}): Typed => ({
    answers,
    ...more,
    values: { 'alice.example.com': here(name), ...more.values },
  })
  const agreement = async () => {
    const words = `holdfast migrate status ${here('anna')} --server ${machine.url}`
    const { screen } = await machine.type(words, passwordHere)
    return /bafy\w+/.exec(screen)![0]
  }
  /** The identity names another server by then. */
  const leave = async () => {
    const last = await lastOperation({ directory, account: erin })
    const services = { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://new.example' } }
    const json = signOperation(nextOperation(last, { services })!, own.key)
    expect(await request(`${machine.plcUrl}/${erin.did}`, { json })).toMatchObject({ status: 200 })
  }

  const ways: readonly (readonly [part: string, way: () => Promise<Typed>])[] = [
    [
      'in alice.old.example',
      async () => ({
        values: { 'alice.old.example': anna.did, 'did:key:zDn…': recoveryKey },
        answers: beginning('anna'),
        code: INTERRUPTED,
      }),
    ],
    ['status', async () => typed('anna', passwordHere)],
    [
      '--agreement',
      async () =>
        typed('anna', passwordHere, {
          values: { 'ABCDE-FGHIJ': await lastCode(old, anna.email), 'bafyrei…': await agreement() },
        }),
    ],
    [
      'cancel',
      async () => {
        await begin(bob, 'bob')
        return typed('bob', passwordHere)
      },
    ],
    [
      '--keep-key',
      async () => {
        await begin(carol, 'carol')
        return typed('carol', passwordHere, { values: { 'did:key:zDn…': own.did }, code: WAITING })
      },
    ],
    [
      '--archive',
      async () => ({
        values: { 'did:plc:…': dora.did },
        answers: [
          ['Handle at the new server', `${here('dora')}\r`],
          ['Email address', `${dora.email}\r`],
          ['Type yes', 'yes\r'],
          ['New password', `${NEW}\r`],
        ],
      }),
    ],
    ['--backup', async () => typed('erin', [['Password at', `${PASSWORD}\r`]], { code: WAITING })],
    ['--mail', async () => typed('erin', [['Password at', `${PASSWORD}\r`]], { code: WAITING })],
    [
      '--leave',
      async () => {
        await leave()
        return typed('erin', [['Password at', `${PASSWORD}\r`]])
      },
    ],
  ]
  const screens = await machine.follow('moving-an-account.md', {
    atTerminal: (line) => ways.find(([part]) => line.includes(part))![1](),
  })
  expect(screens).toHaveLength(ways.length)
  expect(screens.find((screen) => screen.includes(carol.did))).toContain(`Keys that stay:\r\n  ${own.did}`)
  for (const account of [anna, dora]) {
    const { rotationKeys, services } = (await lastOperation({ directory, account })) as Operation
    expect(services['atproto_pds']?.endpoint).toBe(machine.url)
    expect(rotationKeys[0]).toBe(recoveryKey)
  }
  const isActive = async (url: string, did: string) =>
    (await request(`${url}/xrpc/com.atproto.sync.getRepoStatus?did=${did}`)).body.active as boolean
  expect(await isActive(old.url, bob.did)).toBe(true)
  expect(await isActive(machine.url, erin.did)).toBe(false)
})
