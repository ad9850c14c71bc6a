/** People who use a server at once through apps: what each does is drawn from the same numbers in every run. */
import type { Answer } from './http.ts'
import { Random } from '../random.ts'
import { createAccount, type TestAccount } from './account.ts'

const COLLECTION = 'app.bsky.feed.post'
/** Each person has at most as many records as there are endings, which are written again and again. */
const FIRST_PART_OF_KEY = '3jzfcijpj2z2'
const lastPartsOfKeys = [...'234567abcdefghijklmn']
const SIGN_UPS_AT_ONCE = 16

type Use = (person: TestAccount, random: Random) => Promise<Answer>

const post = (person: TestAccount, random: Random) => ({
  repo: person.did,
  collection: COLLECTION,
  rkey: `${FIRST_PART_OF_KEY}${random.of(lastPartsOfKeys)}`,
  record: { $type: COLLECTION, text: 'words '.repeat(1 + random.below(40)), createdAt: '2026-01-01T00:00:00.000Z' },
})
const put: Use = (person, random) => person.call('com.atproto.repo.putRecord', { json: post(person, random) })
const remove: Use = (person, random) => {
  const { repo, collection, rkey } = post(person, random)
  return person.call('com.atproto.repo.deleteRecord', { json: { repo, collection, rkey } })
}
const list: Use = ({ did, call }) => call(`com.atproto.repo.listRecords?repo=${did}&collection=${COLLECTION}&limit=50`)
const describe: Use = ({ did, call }) => call(`com.atproto.repo.describeRepo?repo=${did}`)
const session: Use = ({ call }) => call('com.atproto.server.getSession')
const head: Use = ({ did, call }) => call(`com.atproto.sync.getLatestCommit?did=${did}`)

/** Of ten requests, three write. */
const uses: readonly Use[] = [put, put, remove, list, list, describe, session, session, head, head]

export interface Usage {
  /** How long requests took, in the order in which they ended. */
  millis: number[]
  /** What was answered with an error, each once. */
  faults: Map<string, number>
}

export const noUsage = (): Usage => ({ millis: [], faults: new Map() })

/** One request of somebody. */
export async function useOnce(people: readonly TestAccount[], random: Random, usage: Usage): Promise<void> {
  const use = random.of(uses)
  await measured(usage, () => use(random.of(people), random))
}

/** A request, with how long it took and what went wrong. */
export async function measured(usage: Usage, ask: () => Promise<Answer>): Promise<void> {
  const begun = performance.now()
  const fault = await ask().then(
    ({ status, body }) => (status === 200 ? null : `${status} ${JSON.stringify(body)}`),
    (error: unknown) => String(error),
  )
  usage.millis.push(performance.now() - begun)
  if (fault !== null) usage.faults.set(fault, (usage.faults.get(fault) ?? 0) + 1)
}

/** People with an account each, who have signed in. */
export async function signUp(server: { url: string }, count: number): Promise<TestAccount[]> {
  const people: TestAccount[] = []
  const names = Array.from({ length: count }, (_, index) => `person-${index}`).values()
  const hand = async () => {
    for (const name of names) people.push(await createAccount(server, name))
  }
  await Promise.all(Array.from({ length: SIGN_UPS_AT_ONCE }, hand))
  return people
}
