import { fullName, NAMED_BY } from '../account/operator-accounts.ts'
import { adminCommand } from '../admin-command.ts'
import { minute, table } from '../report.ts'

interface Link {
  name: string
  state: 'ok' | 'warning' | 'fault' | 'unknown'
  text: string
  remedy: string | null
}

interface SubscriberView {
  address: string
  program: string | null
  since: string
  seq: number | null
  leftAt: string | null
}

interface NetworkView {
  links: Link[]
  subscribers: SubscriberView[]
  formerSubscribers: SubscriberView[]
  account: { did: string; handle: string | null; links: Link[] } | null
}

const marks: Record<Link['state'], string> = { ok: 'ok', warning: 'warn', fault: 'FAULT', unknown: '?' }
/** Most former subscribers that the text lists. */
const MAX_FORMER = 3

export const networkCommand = adminCommand({
  summary: 'Show why posts do, or do not, reach the network.',
  details: `Follows the path of a post: whether relays were asked to crawl, what they have read, and who is connected to the event
stream. With --account, also how the directory, DNS, a relay and the AppView see that account. Says how to fix each
broken link. Exits with 1 if there is a fault.

${NAMED_BY}`,
  options: { account: { value: 'ACCOUNT', doc: "Follow the path of this account's posts." } },
  async run({ server, options }) {
    const { account } = options
    const view = await server.get<NetworkView>('/v1/admin/network', {
      account: account === undefined ? undefined : await fullName(server, account),
    })
    const links = [...view.links, ...(view.account?.links ?? [])]
    const subscribers = [...view.subscribers, ...view.formerSubscribers.slice(0, MAX_FORMER)]
    return {
      value: view,
      text: [linkTable(links), ...(subscribers.length === 0 ? [] : [subscriberTable(subscribers)])].join('\n\n'),
      failed: links.some(({ state }) => state === 'fault'),
    }
  },
})

function linkTable(links: readonly Link[]): string {
  const rows = links.flatMap(({ name, state, text, remedy }) => [
    [marks[state], name, text],
    ...(remedy === null ? [] : [['', '', `→ ${remedy}`]]),
  ])
  return table(['STATE', 'LINK', 'WHAT IS KNOWN'], rows)
}

const subscriberTable = (subscribers: readonly SubscriberView[]): string =>
  table(
    ['SUBSCRIBER', 'PROGRAM', 'SINCE', 'LEFT', 'LAST EVENT'],
    subscribers.map(({ address, program, since, leftAt, seq }) => [
      address,
      program ?? '',
      minute(since)!,
      minute(leftAt) ?? '',
      seq === null ? '' : String(seq),
    ]),
  )
