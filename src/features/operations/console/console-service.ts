/** How the server does: what it holds, what it works on, and how the network sees it. */
import { html, type Html } from '../../../http/html.ts'
import { mayRole } from '../operators/operators.ts'
import { barChart } from './console-charts.ts'
import { ask, type Desk } from './console-session.ts'
import {
  actForm,
  factList,
  framed,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  refusalNote,
  sizeOf,
} from './console-layout.ts'

interface Health {
  version: string
  uptimeSeconds: number
  accounts: { total: number; active: number; deactivated: number; takendown: number; flagged: number }
  storage: { blobCount: number; blobBytes: number; blockCount: number }
  firehose: Record<string, number | null>
  steps: { waiting: number; failed: number; oldestAgeSeconds: number | null }
  sweeps: Record<string, ({ completedAt: number } & Record<string, unknown>) | null>
}
interface Examination {
  examinedAt: string | null
  isRunning: boolean
  findings: { check: string; state: string; text: string; remedy: string | null }[]
}
interface Growth {
  days: { day: string; accounts: number; blobs: number; blobBytes: number }[]
}
interface Alerts {
  enabled: boolean
  alerts: { name: string; subject: string | null; state: string; text: string; since: string }[]
}
interface Cluster {
  database: string
  nodes: { id: number; name: string; heartbeatAt: string }[]
}
interface Certificates {
  served: number
  earliestEndsAt: string | null
  faults: { names: string; text: string }[]
}

export async function overviewPage(desk: Desk): Promise<Response> {
  if (!mayRole(desk.who.role, 'observe'))
    return framed(desk, {
      title: 'Overview',
      body: html`<section class="card"><p class="note">The links above lead to what your role permits.</p></section>`,
    })
  const [health, growth, alerts, doctor, cluster, certificates] = await Promise.all(
    ['health', 'growth', 'alerts', 'doctor', 'cluster', 'certificates'].map((name) => ask(desk, `/v1/admin/${name}`)),
  )
  return framed(desk, {
    title: 'Overview',
    body: html`
${alerts!.ok && alertsPart(alerts!.body as Alerts)}
${doctor!.ok && doctorPart(doctor!.body as Examination)}
${health!.ok ? healthPart(health!.body as Health) : refusalNote(health!)}
${growth!.ok && growthPart(growth!.body as Growth)}
${cluster!.ok && placePart(cluster!.body as Cluster, certificates!.ok ? (certificates!.body as Certificates) : null)}`,
  })
}

function alertsPart({ enabled, alerts }: Alerts): Html {
  const lasting = alerts.filter(({ state }) => state !== 'over')
  return html`
<section class="card">
  <h2>Needs attention</h2>
  ${!enabled && html`<p class="note">Alerts are off: set alerts.mail_to or alerts.webhook_url.</p>`}
  ${listOf(
    lasting.map(({ name, text, since }) => noteRow(name.replaceAll('-', ' '), [text, html`since ${minuteOf(since)}`])),
    'Nothing needs attention.',
  )}
</section>`
}

/** What the doctor finds: first what needs a remedy, the rest folded away. */
function doctorPart({ examinedAt, isRunning, findings }: Examination): Html {
  const isGood = ({ state }: { state: string }) => state === 'ok' || state === 'skipped'
  const row = ({ check, state, text, remedy }: Examination['findings'][number]) =>
    noteRow(`${check.replaceAll('-', ' ')}: ${state}`, [text, remedy !== null && `What to do: ${remedy}`])
  return html`
<section class="card">
  <div class="tight"><h2>The doctor’s findings</h2>
  <p class="quiet">${examinedAt === null ? 'The server is being examined. Reload this page in a moment.' : html`Examined ${minuteOf(examinedAt)}${isRunning && ', and again now'}.`} “holdfast doctor” examines more.</p></div>
  ${
    examinedAt !== null &&
    html`
  ${listOf(findings.filter((finding) => !isGood(finding)).map(row), 'Everything is in order.')}
  <details><summary>What is in order</summary>${listOf(findings.filter(isGood).map(row), 'Nothing is.')}</details>`
  }
</section>`
}

const DAY_SECS = 86_400
const daysOf = (secs: number): string => `${(secs / DAY_SECS).toFixed(1)} days`

const healthPart = ({ version, uptimeSeconds, accounts, storage, firehose, steps, sweeps }: Health): Html => html`
<section class="card">
  <h2>The server</h2>
  ${factList({
    Version: version,
    'Running for': daysOf(uptimeSeconds),
    Accounts: `${accounts.total}: ${accounts.active} active, ${accounts.deactivated} deactivated, ${accounts.takendown} taken down`,
    'Flagged accounts': accounts.flagged,
    Blobs: `${storage.blobCount}, ${sizeOf(storage.blobBytes)}`,
    'Records, nodes and commits': storage.blockCount,
    'Subscribers of the event stream': firehose['subscribers'] ?? 0,
    'Newest event': firehose['currentSeq'] ?? 0,
    'Sweeps that have run': `${Object.values(sweeps).filter((last) => last !== null).length} of ${Object.keys(sweeps).length}`,
    'Steps that wait': steps.waiting,
    'Steps that failed': steps.failed,
  })}
</section>`

function growthPart({ days }: Growth): Html {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
  const accounts = days.map((day) => day.accounts)
  const bytes = days.map((day) => day.blobBytes)
  return html`
<section class="card">
  <h2>The last ${days.length} days</h2>
  <p class="quiet">${sum(accounts)} new accounts</p>
  ${barChart(`New accounts per day: ${sum(accounts)} in ${days.length} days, at most ${Math.max(0, ...accounts)} on one`, accounts)}
  <p class="quiet">${sizeOf(sum(bytes))} of new blobs</p>
  ${barChart(`New blobs per day: ${sizeOf(sum(bytes))} in ${days.length} days, at most ${sizeOf(Math.max(0, ...bytes))} on one`, bytes)}
</section>`
}

const placePart = ({ database, nodes }: Cluster, certificates: Certificates | null): Html => html`
<section class="card">
  <h2>Where it runs</h2>
  ${factList({
    Database: database,
    Nodes:
      nodes.length === 0
        ? 'one'
        : html`${nodes.map(({ name, heartbeatAt }) => html`${name}, seen ${minuteOf(heartbeatAt)} `)}`,
    Certificates:
      certificates === null || certificates.served === 0
        ? 'none of its own'
        : html`${certificates.served}${certificates.earliestEndsAt !== null && html`, the first ends ${minuteOf(certificates.earliestEndsAt)}`}`,
    'Faults of certificates':
      certificates === null || certificates.faults.length === 0
        ? null
        : certificates.faults.map(({ text }) => text).join('; '),
  })}
</section>`

interface Steps {
  kinds: { kind: string; waiting: number; failed: number }[]
  steps: { id: string; kind: string; status: string; createdAt: string; lastError: string | null }[]
  cursor?: string
}

export async function workPage(desk: Desk): Promise<Response> {
  const cursor = desk.call.url.searchParams.get('cursor') ?? ''
  const [steps, health] = [
    await ask(desk, `/v1/admin/steps?limit=25&cursor=${encodeURIComponent(cursor)}`),
    await ask(desk, '/v1/admin/health'),
  ]
  const { steps: rows, cursor: next } = steps.ok ? (steps.body as Steps) : { steps: [], cursor: undefined }
  const sweeps = health.ok ? Object.entries((health.body as Health).sweeps) : []
  const mayOperate = mayRole(desk.who.role, 'operate')
  const nameOf = (member: string) => member.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return framed(desk, {
    title: 'Work',
    body: html`
<section class="card">
  <div class="tight"><h2>Steps</h2><p class="quiet">Mails and other work with the outside world that waits, or has failed.</p></div>
  ${refusalNote(steps)}
  ${listOf(
    rows.map(({ id, kind, status, createdAt, lastError }) =>
      noteRow(
        kind,
        [html`${status}, since ${minuteOf(createdAt)}`, lastError],
        mayOperate
          ? html`<div class="stack">${actForm(desk, { id: `retry-${id}`, act: 'retry-steps', back: '/admin/work', button: 'Retry', fields: { id } })}${actForm(desk, { id: `drop-${id}`, act: 'drop-steps', back: '/admin/work', button: 'Drop', isDangerous: true, fields: { id } })}</div>`
          : null,
      ),
    ),
    'Nothing waits.',
  )}
  ${moreLink(desk, next)}
</section>
<section class="card">
  <div class="tight"><h2>Sweeps</h2><p class="quiet">Regular passes, among them backups and the renewal of certificates.</p></div>
  ${listOf(
    sweeps.map(([member, last]) => {
      const name = nameOf(member)
      const { completedAt, ...report } = last ?? { completedAt: null }
      return noteRow(
        name,
        [
          completedAt === null ? 'has not run yet' : html`last ${minuteOf(new Date(completedAt * 1000).toISOString())}`,
          last !== null && countsIn(report),
        ],
        mayOperate
          ? actForm(desk, {
              id: `sweep-${name}`,
              act: 'sweep',
              back: '/admin/work',
              button: 'Run now',
              fields: { name },
            })
          : null,
      )
    }),
    'There are no sweeps.',
  )}
</section>`,
  })
}

interface Network {
  links: { name: string; state: string; text: string; remedy?: string }[]
  subscribers: { address: string; program: string | null; since: string; seq: number | null }[]
}

export async function networkPage(desk: Desk): Promise<Response> {
  const answer = await ask(desk, '/v1/admin/network')
  const { links, subscribers } = answer.ok ? (answer.body as Network) : { links: [], subscribers: [] }
  return framed(desk, {
    title: 'Network',
    body: html`
<section class="card">
  <div class="tight"><h2>The way to the network</h2><p class="quiet">It was looked at just now.</p></div>
  ${refusalNote(answer)}
  ${listOf(
    links.map(({ name, state, text, remedy }) =>
      noteRow(html`${name}: ${state}`, [text, state !== 'ok' && remedy !== undefined && html`What to do: ${remedy}`]),
    ),
    'Nothing was looked at.',
  )}
  ${mayRole(desk.who.role, 'operate') && actForm(desk, { id: 'crawl', act: 'crawl', back: '/admin/network', button: 'Ask the relays to crawl' })}
</section>
<section class="card">
  <h2>Subscribers of the event stream</h2>
  ${listOf(
    subscribers.map(({ address, program, since, seq }) =>
      noteRow(program ?? address, [address, html`since ${minuteOf(since)}${seq !== null && html`, at event ${seq}`}`]),
    ),
    'There are no subscribers.',
  )}
</section>`,
  })
}

/** The numbers of a report, in words. */
const countsIn = (report: Readonly<Record<string, unknown>>): string =>
  Object.entries(report)
    .flatMap(([what, count]) => (typeof count === 'number' ? [`${what} ${count}`] : []))
    .join(', ')
