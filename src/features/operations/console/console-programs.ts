/** Programs that act for accounts, the providers that vouch for them, and the push notifications to devices. */
import { html, type Html } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { mayRole } from '../operators/operators.ts'
import { ask, type Desk } from './console-session.ts'
import {
  actForm,
  bodyOf,
  factList,
  FORM_ROWS,
  framed,
  inEnglish,
  listOf,
  minuteOf,
  noteRow,
  pieceOf,
  refusalNote,
  wordFor,
} from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { roomsTexts as texts } from './rooms-texts.ts'

const AGENTS = '/admin/agents'
const PUSHES = '/admin/pushes'

interface Agents {
  agents: { type: string; status: keyof typeof counted; count: number; issuer?: string; trusted?: boolean }[]
  trustedIssuers: string[]
}

const counted = { active: texts.agentsWaiting, claimed: texts.agentsActing, revoked: texts.agentsEnded } as const
const registrationTypes = {
  anonymous: texts.byItself,
  service_auth: texts.byHolder,
  identity_assertion: texts.byProvider,
  child: texts.asChild,
} as const
const keyStates = { active: texts.keyActive, retired: texts.keyRetired, revoked: texts.keyRevoked } as const

export async function agentsPage(desk: Desk): Promise<Response> {
  const answer = await ask(desk, '/v1/admin/agents')
  const { agents, trustedIssuers } = bodyOf<Agents>(answer, { agents: [], trustedIssuers: [] })
  const issuers = new Set([...trustedIssuers, ...agents.flatMap(({ issuer }) => issuer ?? [])])
  const trusted = new Set(trustedIssuers)
  const mayEnd = mayRole(desk.who.role, 'operate')
  return framed(desk, {
    title: consoleTexts.agents,
    body: html`
<section class="card">
  <div class="tight"><h2>${texts.registrations}</h2><p class="quiet">${texts.registrationsAbout}</p></div>
  ${refusalNote(answer)}
  ${listOf(
    agents.map(({ type, status, count, issuer }) =>
      noteRow(counted[status]({ count }), [wordFor(registrationTypes, type), issuer ?? null]),
    ),
    texts.noAgents,
  )}
  ${mayEnd && actForm(desk, { id: 'end-agent', act: 'end-agent', back: AGENTS, button: texts.endAgent, inputs: field({ name: 'id', label: texts.itsRegistration, hint: texts.registrationHint, required: true, maxLength: 100 }), isDangerous: true })}
</section>
<section class="card">
  <div class="tight"><h2>${texts.providers}</h2><p class="quiet">${texts.providersAbout}</p></div>
  ${listOf(
    [...issuers].map((issuer, i) =>
      noteRow(
        issuer,
        [trusted.has(issuer) ? texts.trusted : texts.notTrusted],
        mayEnd
          ? actForm(desk, {
              id: `issuer-${i}`,
              act: 'end-agents-of',
              back: AGENTS,
              button: texts.endVouched,
              fields: { issuer },
              isDangerous: true,
            })
          : null,
      ),
    ),
    texts.noProviders,
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
  const relay = bodyOf<Pushes>(health, { notifications: null }).notifications
  const { shown: keys, more } = pieceOf(desk, bodyOf<SenderKeys>(answer, { keys: [] }).keys, FORM_ROWS)
  return framed(desk, {
    title: consoleTexts.pushes,
    body: html`
<section class="card">
  <h2>${texts.relay}</h2>
  ${refusalNote(health)}
  ${relay === null ? html`<p class="note">${texts.noRelay}</p>` : relayFacts(relay)}
</section>
<section class="card">
  <div class="tight"><h2>${texts.sealingKeys}</h2><p class="quiet">${texts.sealingAbout}</p></div>
  ${refusalNote(answer)}
  ${listOf(
    keys.map(({ kid, state, createdAt, changedAt }) =>
      noteRow(
        texts.keyState({ kid: String(kid), state: wordFor(keyStates, state) }),
        [texts.madeChanged({ time: minuteOf(createdAt), changed: minuteOf(changedAt) })],
        state === 'revoked'
          ? null
          : actForm(desk, {
              id: `revoke-key-${kid}`,
              act: 'revoke-push-key',
              back: PUSHES,
              button: consoleTexts.revoke,
              fields: { kid: String(kid) },
              isDangerous: true,
            }),
      ),
    ),
    texts.noKeys,
  )}
  ${more}
  ${relay !== null && actForm(desk, { id: 'rotate-keys', act: 'rotate-push-keys', back: PUSHES, button: texts.rotate })}
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
  factList([
    [texts.relayName, html`<code>${relay}</code>`],
    [texts.connection, connected ? texts.open : texts.closed],
    [texts.lastAnswer, lastAnswerAt === null ? texts.noAnswer : minuteOf(lastAnswerAt)],
    [
      texts.failingSince,
      failingSince === null ? null : texts.failure({ time: minuteOf(failingSince), error: inEnglish(lastError ?? '') }),
    ],
    [texts.queued, queue.depth],
    [texts.oldest, queue.oldestAgeSeconds === null ? null : texts.seconds({ secs: queue.oldestAgeSeconds })],
  ])
