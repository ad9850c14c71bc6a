/**
 * A wallet whose line breaks at any of its requests, before or after the request has arrived: what it says again ends
 * well.
 */
import { beforeAll, expect, test } from 'bun:test'
import { didWebOfHost } from '../../../src/protocol/did-document.ts'
import { claimCode, forCeremonies } from '../../support/clients/ceremony.ts'
import { startFaultyLine, type Fate } from '../../support/faults/faulty-line.ts'
import { request } from '../../support/clients/http.ts'
import { recoveryCodes } from '../../support/clients/recovery.ts'
import { printedShare, WalletUser, type WalletRun, createWords } from '../../support/clients/wallet-user.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const toServer = setUp(() => startFaultyLine())
const { pds, plc } = useWorld({
  plc: true,
  config: () => ({
    ...forCeremonies,
    publicUrl: toServer.url,
    serverDid: didWebOfHost(new URL(toServer.url).host)!,
    accounts: { passwordOptional: true },
    recovery: { releaseDelaySecs: 0 },
  }),
})
/** Only the wallet uses it; the server reaches the directory directly. */
const toDirectory = setUp(() => startFaultyLine(plc.url))
const lines = [toServer, toDirectory]
let place: string[]
beforeAll(() => {
  toServer.to = pds.url
  place = ['--server', toServer.url, '--directory', toDirectory.url]
})

const fates = ['question lost', 'answer lost'] as const
/** More than any command makes. */
const MANY_REQUESTS = 40

/** From the request of this number on, none is answered. Returns whether it came to that, and mends the line. */
function breakAt(number: number, fate: Fate): () => boolean {
  let seen = 0
  for (const line of lines) line.fate = () => (++seen >= number ? fate : 'answered')
  return () => {
    for (const line of lines) line.fate = () => 'answered'
    return seen >= number
  }
}

/**
 * Run a command with the line broken at each of its requests in turn, until there are no more of them. Returns how
 * often it broke.
 */
async function brokenEverywhere(
  fate: Fate,
  story: (breaking: (command: () => Promise<WalletRun>) => Promise<WalletRun>, round: number) => Promise<void>,
) {
  for (let round = 1; round < MANY_REQUESTS; round++) {
    let isBroken = false
    await story(async (command) => {
      const mend = breakAt(round, fate)
      const run = await command()
      isBroken = mend()
      return run
    }, round)
    if (!isBroken) return round - 1
  }
  throw new Error('the command never ends')
}

const state = async (did: string) => (await request(`${plc.url}/${did}/data`)).body
const log = async (did: string) => (await request(`${plc.url}/${did}/log/audit`)).body
let people = 0

async function born(user: WalletUser): Promise<{ name: string; paper: string; did: string }> {
  const name = `person${++people}`
  const words = createWords(place, name, await claimCode(pds))
  const paper = printedShare(await user.do(words))
  return { name, paper, did: (await user.contents()).did! }
}

test.each(fates)(
  'a sign-up without a code (%s) ends with one account and its share, when the same is said again',
  async (fate) => {
    const breaks = await brokenEverywhere(fate, async (breaking) => {
      using user = new WalletUser(() => pds.clock.now())
      const name = `person${++people}`
      const words = createWords(place, name)
      const first = await breaking(() => user.run(words))
      const out = first.code === 0 ? first.out : await user.do(words)
      expect(printedShare(out).split(' ')).toHaveLength(42)
      // The next command brings the share, if the line broke before it.
      expect(await user.do(['sign-in'])).toContain(`as ${name}.test`)
      const { did, handle, unfinished, paperShare } = await user.contents()
      expect({ handle, unfinished, paperShare }).toEqual({ handle: `${name}.test`, unfinished: null, paperShare: null })
      expect(await log(did!)).toHaveLength(1)
      expect(await pds.rows('account', { email: `${name}@example.com` }, ['did'])).toEqual([{ did: did! }])
      expect(await pds.rows('escrow_share', { did: did! }, ['did'])).toEqual([{ did: did! }])
    })
    expect(breaks).toBeGreaterThanOrEqual(5)
  },
  60_000,
)

test.each(fates)(
  'a ceremony (%s) ends with one account, when the same is said again',
  async (fate) => {
    const breaks = await brokenEverywhere(fate, async (breaking) => {
      using user = new WalletUser(() => pds.clock.now())
      const name = `person${++people}`
      const words = createWords(place, name, await claimCode(pds))
      const first = await breaking(() => user.run(words))
      const out = first.code === 0 ? first.out : await user.do(words)
      expect(printedShare(out).split(' ')).toHaveLength(42)
      const { did, handle, unfinished, paperShare } = await user.contents()
      expect({ handle, unfinished, paperShare }).toEqual({ handle: `${name}.test`, unfinished: null, paperShare: null })
      expect(await log(did!)).toHaveLength(1)
      expect(await user.do(['sign-in'])).toContain(`as ${name}.test`)
      expect(await pds.rows('account', { email: `${name}@example.com` }, ['did'])).toEqual([{ did: did! }])
    })
    expect(breaks).toBeGreaterThanOrEqual(6)
  },
  60_000,
)

test.each(fates)(
  'a recovery (%s) brings the identity back, at the latest when it is begun again',
  async (fate) => {
    const breaks = await brokenEverywhere(fate, async (breaking) => {
      using user = new WalletUser(() => pds.clock.now())
      const { name, paper, did } = await born(user)
      const device = 'new'
      const code = async () => (await recoveryCodes(pds, `${name}@example.com`)).at(-1)!
      await user.do(['recover', did, ...place], { device })
      const first = await code()
      const broken = await breaking(() => user.run(['recover', '--code', first, '--share', paper], { device }))
      let { out } = broken
      if (broken.code !== 0) {
        const again = await user.run(['recover', '--code', first, '--share', paper], { device })
        out = again.out
        if (again.code !== 0) {
          // The answer with the share was lost, and a share is handed out once.
          expect(again.err).toContain('does not accept this code')
          await user.do(['recover', '--again'], { device })
          out = await user.do(['recover', '--code', await code(), '--share', paper], { device })
        }
      }
      const { recoveryKey } = await user.contents(device)
      expect((await state(did)).rotationKeys.slice(0, 2)).toEqual([await user.do(['key'], { device }), recoveryKey!])
      expect((await user.run(['sign-in'])).code).toBe(1)
      expect(await user.do(['show'], { device })).toContain(did)
      expect(printedShare(out)).not.toBe(paper)
      expect(await user.contents(device)).toMatchObject({ unfinished: null, paperShare: null })
    })
    expect(breaks).toBeGreaterThanOrEqual(5)
  },
  60_000,
)

test.each(fates)(
  'a key (%s) is rotated, when the same is said again',
  async (fate) => {
    const breaks = await brokenEverywhere(fate, async (breaking) => {
      using user = new WalletUser(() => pds.clock.now())
      const { did } = await born(user)
      const before = (await state(did)).verificationMethods.atproto
      const broken = await breaking(() => user.run(['rotate-key']))
      if (broken.code !== 0) await user.do(['rotate-key'])
      const { verificationMethods, rotationKeys } = await state(did)
      expect(verificationMethods.atproto).not.toBe(before)
      expect(rotationKeys).toHaveLength(3)
      expect(await pds.rows('account', { did }, ['signing_key'])).toEqual([
        { signing_key: verificationMethods.atproto },
      ])
      expect((await user.contents()).unfinished).toBeNull()
    })
    expect(breaks).toBeGreaterThanOrEqual(3)
  },
  60_000,
)

test.each(fates)(
  'a transfer (%s) moves the identity, when the same is said again',
  async (fate) => {
    for (const step of ['join', 'hand over', 'arrive']) {
      await brokenEverywhere(fate, async (breaking) => {
        using user = new WalletUser(() => pds.clock.now())
        const { did } = await born(user)
        const device = 'new'
        /** Once with the line broken, if it is this step's turn, and again if need be. */
        const take = async (name: string, words: string[], of?: string) => {
          const broken =
            name === step
              ? await breaking(() => user.run(words, { device: of }))
              : await user.run(words, { device: of })
          return broken.code === 0 ? broken : user.run(words, { device: of })
        }
        const join = /holdfast wallet (transfer --join .*)/.exec(await user.do(['transfer']))![1]!.split(' ')
        join.splice(join.indexOf('--server'), 2, ...place)
        const joined = await take('join', join, device)
        if (joined.code !== 0) {
          // The answer to the code was lost, and a code is taken once. The devices do it without the server.
          expect(joined.err).toContain('has accepted this transfer')
          const place = join.indexOf('--code')
          await user.do(join.toSpliced(place, 2), { device })
        }
        const key = await user.do(['key'], { device })
        expect((await take('hand over', ['transfer', '--to', key])).code).toBe(0)
        expect((await take('arrive', ['transfer'], device)).code).toBe(0)
        // The server gets its share with the next command, if it has not.
        await user.do(['sign-in'], { device })
        const { recoveryKey, unfinished } = await user.contents(device)
        expect((await state(did)).rotationKeys.slice(0, 2)).toEqual([key, recoveryKey!])
        expect(unfinished).toBeNull()
        expect((await user.run(['sign-in'])).code).toBe(1)
      })
    }
  },
  60_000,
)
