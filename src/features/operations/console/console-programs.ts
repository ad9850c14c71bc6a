/** Programs that act for accounts, with who vouches for them, and the push notifications to devices. */
import { html, type Html } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { mayRole } from '../operators/operators.ts'
import { ask, type Desk } from './console-session.ts'
import { actForm, factList, framed, listOf, minuteOf, noteRow, refusalNote } from './console-layout.ts'

const AGENTS = '/admin/agents'
const PUSHES = '/admin/pushes'

interface Agents {
  agents: { type: string; status: string; count: number; issuer?: string; trusted?: boolean }[]
  trustedIssuers: string[]
}

const statuses: Readonly<Record<string, string>> = {
  active: 'wait for an account holder',
  claimed: 'act for an account',
  revoked: 'have ended',
}

export async function agentsPage(desk: Desk): Promise<Response> {
  const answer = await ask(desk, '/v1/admin/agents')
  const { agents, trustedIssuers } = answer.ok ? (answer.body as Agents) : { agents: [], trustedIssuers: [] }
  const issuers = new Set([...trustedIssuers, ...agents.flatMap(({ issuer }) => issuer ?? [])])
  const trusted = new Set(trustedIssuers)
  const mayEnd = mayRole(desk.who.role, 'operate')
  return framed(desk, {
    title: 'Agents',
    body: html`
<section class="card">
  <div class="tight"><h2>Registrations</h2><p class="quiet">Programs that act for accounts. The page of an account lists its own.</p></div>
  ${refusalNote(answer)}
  ${listOf(
    agents.map(({ type, status, count, issuer }) =>
      noteRow(html`${count} ${statuses[status] ?? status}`, [`registered as ${type}`, issuer ?? null]),
    ),
    'No program has registered.',
  )}
  ${mayEnd && actForm(desk, { id: 'end-agent', act: 'end-agent', back: AGENTS, button: 'End a program', inputs: field({ name: 'id', label: 'Its registration', hint: 'It begins with “reg_”.', required: true, maxLength: 100 }), isDangerous: true })}
</section>
<section class="card">
  <div class="tight"><h2>Identity providers</h2><p class="quiet">They vouch for programs. Trusted providers are configured in agent_auth.trusted_issuers.</p></div>
  ${listOf(
    [...issuers].map((issuer, i) =>
      noteRow(
        issuer,
        [trusted.has(issuer) ? 'trusted' : 'no longer trusted'],
        mayEnd
          ? actForm(desk, {
              id: `issuer-${i}`,
              act: 'end-agents-of',
              back: AGENTS,
              button: 'End all programs that it vouches for',
              fields: { issuer },
              isDangerous: true,
            })
          : null,
      ),
    ),
    'No identity provider is configured.',
  )}
</section>`,
  })
}

interface Pushes {
  notifications: {
    relay: string
    connected: boolean
    lastAnswerAt: string | null
    failingSince: string | null
    lastError: string | null
    queue: { depth: number; oldestAgeSeconds: number | null }
  } | null
}
interface SenderKeys {
  keys: { kid: number; state: string; createdAt: string; changedAt: string }[]
}

export async function pushesPage(desk: Desk): Promise<Response> {
  const [health, answer] = [
    await ask(desk, '/v1/admin/health'),
    await ask(desk, '/v1/admin/notifications/sender-keys/all'),
  ]
  const relay = health.ok ? (health.body as Pushes).notifications : null
  const keys = answer.ok ? (answer.body as SenderKeys).keys : []
  return framed(desk, {
    title: 'Pushes',
    body: html`
<section class="card">
  <h2>The push relay</h2>
  ${refusalNote(health)}
  ${relay === null ? html`<p class="note">No push relay is configured (notifications.relay).</p>` : relayFacts(relay)}
</section>
<section class="card">
  <div class="tight"><h2>Keys that seal pushes</h2><p class="quiet">A rotation creates a new key and retires the old one, which devices still trust until it is revoked.</p></div>
  ${refusalNote(answer)}
  ${listOf(
    keys.map(({ kid, state, createdAt, changedAt }) =>
      noteRow(
        html`Key ${kid}: ${state}`,
        [html`made ${minuteOf(createdAt)}, changed ${minuteOf(changedAt)}`],
        state === 'revoked'
          ? null
          : actForm(desk, {
              id: `revoke-key-${kid}`,
              act: 'revoke-push-key',
              back: PUSHES,
              button: 'Revoke',
              fields: { kid: String(kid) },
              isDangerous: true,
            }),
      ),
    ),
    'There are no keys yet.',
  )}
  ${relay !== null && actForm(desk, { id: 'rotate-keys', act: 'rotate-push-keys', back: PUSHES, button: 'Rotate the keys' })}
</section>`,
  })
}

const relayFacts = ({
  relay,
  connected,
  lastAnswerAt,
  failingSince,
  lastError,
  queue,
}: NonNullable<Pushes['notifications']>): Html =>
  factList({
    Relay: html`<span class="mono">${relay}</span>`,
    Connection: connected ? 'open' : 'closed until it is needed',
    'Last answer': lastAnswerAt === null ? 'none since the start' : minuteOf(lastAnswerAt),
    'Failing since': failingSince === null ? null : html`${minuteOf(failingSince)}: ${lastError}`,
    'Queued pushes': queue.depth,
    'Age of the oldest': queue.oldestAgeSeconds === null ? null : `${queue.oldestAgeSeconds} s`,
  })
