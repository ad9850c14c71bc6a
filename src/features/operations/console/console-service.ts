/** How the server is doing: what it holds, what it is working on, and how the network sees it. */
import { DAY_SECS } from '../../../base/durations.ts'
import { html, type Html, type Phrase, type Wording } from '../../../http/html.ts'
import { listPhrase, sizePhrase } from '../../../http/texts.ts'
import { mayRole } from '../operators/operators.ts'
import { barChart } from './console-charts.ts'
import { ask, type Desk } from './console-session.ts'
import {
  actForm,
  bodyOf,
  factList,
  framed,
  inEnglish,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  pieceOf,
  refusalNote,
  TWO_FORM_ROWS,
  wordFor,
} from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { serviceTexts as texts } from './service-texts.ts'

interface Health {
  version: string
  uptimeSeconds: number
  accounts: { total: number; active: number; deactivated: number; takendown: number; flagged: number }
  storage: { blobCount: number; blobBytes: number; blockCount: number }
  disk: { freeBytes: number }
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
  active: { day: number; week: number; month: number }
}
interface Alerts {
  enabled: boolean
  alerts: { name: string; subject: string | null; state: string; text: string; since: string }[]
}
interface Integrity {
  count: number
  damaged: { did: string; handle: string | null; faults: string[]; since: string }[]
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
      title: consoleTexts.overview,
      body: html`<section class="card"><p class="note">${texts.roleOnly}</p></section>`,
    })
  const [health, growth, alerts, doctor, cluster, certificates, integrity] = await Promise.all(
    ['health', 'growth', 'alerts', 'doctor', 'cluster', 'certificates', 'integrity'].map((name) =>
      ask(desk, `/v1/admin/${name}`),
    ),
  )
  return framed(desk, {
    title: consoleTexts.overview,
    body: html`
${alerts!.ok && alertsPart(alerts!.body as Alerts)}
${integrity!.ok && integrityPart(integrity!.body as Integrity)}
${doctor!.ok && doctorPart(doctor!.body as Examination)}
${health!.ok ? healthPart(health!.body as Health) : refusalNote(health!)}
${growth!.ok && growthPart(growth!.body as Growth)}
${
  cluster!.ok &&
  placePart(
    cluster!.body as Cluster,
    certificates!.ok ? (certificates!.body as Certificates) : null,
    doctor!.ok ? (doctor!.body as Examination) : null,
  )
}`,
  })
}

function alertsPart({ enabled, alerts }: Alerts): Html {
  const lasting = alerts.filter(({ state }) => state !== 'over')
  return html`
<section class="card">
  <h2>${texts.attention}</h2>
  ${!enabled && html`<p class="note">${texts.alertsOff}</p>`}
  ${
    (enabled || lasting.length > 0) &&
    listOf(
      lasting.map(({ name, text, since }) =>
        noteRow(inEnglish(name.replaceAll('-', ' ')), [inEnglish(text), consoleTexts.since({ time: minuteOf(since) })]),
      ),
      texts.noAlerts,
    )
  }
</section>`
}

/** Most repositories, and most faults of each, on the page; the command lists all. */
const MAX_DAMAGED = 10
const MAX_FAULTS = 5

/** What the running check has found, with the place of each fault. */
const integrityPart = ({ count, damaged }: Integrity): Html => html`
<section class="card">
  <h2>${texts.damagedRepos}</h2>
  ${listOf(
    damaged
      .slice(0, MAX_DAMAGED)
      .map(({ did, handle, faults, since }) =>
        noteRow(handle ?? did, [
          did,
          ...faults.slice(0, MAX_FAULTS).map(inEnglish),
          consoleTexts.since({ time: minuteOf(since) }),
        ]),
      ),
    texts.noDamagedRepos,
  )}
  ${count > 0 && html`<p class="quiet">${texts.repairRepos({ number: count })}</p>`}
</section>`

/** States of the doctor's findings. */
const findingStates = {
  ok: texts.ok,
  warning: texts.warning,
  fault: texts.fault,
  skipped: texts.skipped,
  unknown: texts.unknown,
} as const
const examined = (check: string, state: string): Phrase =>
  texts.checkState({ check: inEnglish(check.replaceAll('-', ' ')), state: wordFor(findingStates, state) })

/** The doctor's findings: first those that need a remedy, the rest folded away. */
function doctorPart({ examinedAt, isRunning, findings }: Examination): Html {
  const isGood = ({ state }: { state: string }) => state === 'ok' || state === 'skipped'
  const row = ({ check, state, text, remedy }: Examination['findings'][number]) =>
    noteRow(examined(check, state), [
      inEnglish(text),
      remedy !== null && consoleTexts.whatToDo({ remedy: inEnglish(remedy) }),
    ])
  return html`
<section class="card">
  <div class="tight"><h2>${texts.doctor}</h2>
  <p class="quiet">${examinedAt === null ? texts.examining : (isRunning ? texts.examinedAgain : texts.examined)({ time: minuteOf(examinedAt) })}</p></div>
  ${
    examinedAt !== null &&
    html`
  ${listOf(findings.filter((finding) => !isGood(finding)).map(row), texts.allInOrder)}
  <details><summary>${texts.inOrder}</summary>${listOf(findings.filter(isGood).map(row), texts.noneInOrder)}</details>`
  }
</section>`
}

const daysOf = (secs: number): Phrase => texts.days({ count: Math.round((10 * secs) / DAY_SECS) / 10 })

const healthPart = ({ version, uptimeSeconds, accounts, storage, disk, firehose, steps, sweeps }: Health): Html => html`
<section class="card">
  <h2>${texts.server}</h2>
  ${factList([
    [texts.version, version],
    [texts.runningFor, daysOf(uptimeSeconds)],
    [texts.accounts, texts.accountCounts(accounts)],
    [texts.flagged, accounts.flagged],
    [texts.blobs, texts.countAndSize({ number: storage.blobCount, size: sizePhrase(storage.blobBytes) })],
    [texts.blocks, storage.blockCount],
    [texts.freeDisk, sizePhrase(disk.freeBytes)],
    [texts.subscribers, firehose['subscribers'] ?? 0],
    [texts.newestEvent, firehose['currentSeq'] ?? 0],
    [
      texts.sweepsRun,
      texts.ofTotal({
        some: Object.values(sweeps).filter((last) => last !== null).length,
        all: Object.keys(sweeps).length,
      }),
    ],
    [texts.stepsWaiting, steps.waiting],
    [texts.stepsFailed, steps.failed],
  ])}
</section>`

function growthPart({ days, active }: Growth): Html {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
  const accounts = days.map((day) => day.accounts)
  const bytes = days.map((day) => day.blobBytes)
  return html`
<section class="card">
  <h2>${texts.lastDays({ count: days.length })}</h2>
  <p class="quiet">${texts.activeAccounts(active)}</p>
  <p class="quiet">${texts.newAccounts({ count: sum(accounts) })}</p>
  ${barChart(texts.accountsChart({ sum: sum(accounts), days: days.length, most: Math.max(0, ...accounts) }), accounts)}
  <p class="quiet">${texts.newBlobs({ size: sizePhrase(sum(bytes)) })}</p>
  ${barChart(texts.blobsChart({ sum: sizePhrase(sum(bytes)), days: days.length, most: sizePhrase(Math.max(0, ...bytes)) }), bytes)}
</section>`
}

/** What the doctor found out, where that says more than a number. */
const findingFact = (doctor: Examination | null, name: string): Html | null => {
  const found = doctor?.findings.find(({ check }) => check === name)
  return found === undefined ? null : inEnglish(found.text)
}

/** What databases are called. */
const databaseNames = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const

const placePart = (
  { database, nodes }: Cluster,
  certificates: Certificates | null,
  doctor: Examination | null,
): Html => html`
<section class="card">
  <h2>${texts.where}</h2>
  ${factList([
    [texts.database, wordFor(databaseNames, database)],
    [
      texts.nodes,
      nodes.length === 0
        ? texts.oneNode
        : listPhrase(nodes.map(({ name, heartbeatAt }) => texts.nodeSeen({ name, time: minuteOf(heartbeatAt) }))),
    ],
    [texts.relays, findingFact(doctor, 'relay')],
    [texts.backups, findingFact(doctor, 'backups')],
    [texts.certificates, certificateWords(certificates)],
    [
      texts.certificateFaults,
      certificates === null || certificates.faults.length === 0
        ? null
        : inEnglish(certificates.faults.map(({ text }) => text).join('; ')),
    ],
  ])}
</section>`

function certificateWords(certificates: Certificates | null): Wording | number {
  if (certificates === null || certificates.served === 0) return texts.noCertificates
  const { served, earliestEndsAt } = certificates
  return earliestEndsAt === null ? served : texts.certificatesUntil({ number: served, time: minuteOf(earliestEndsAt) })
}

interface Steps {
  kinds: { kind: string; waiting: number; failed: number }[]
  steps: { id: string; kind: string; status: string; createdAt: string; lastError: string | null }[]
  cursor?: string
}

const stepStates = { waiting: texts.stepWaiting, failed: texts.stepFailed } as const

export async function workPage(desk: Desk): Promise<Response> {
  const cursor = desk.call.url.searchParams.get('cursor') ?? ''
  const [steps, health] = [
    await ask(desk, `/v1/admin/steps?limit=${TWO_FORM_ROWS}&cursor=${encodeURIComponent(cursor)}`),
    await ask(desk, '/v1/admin/health'),
  ]
  const { steps: rows, cursor: next } = bodyOf<Pick<Steps, 'steps' | 'cursor'>>(steps, { steps: [] })
  const sweeps = Object.entries(bodyOf<Pick<Health, 'sweeps'>>(health, { sweeps: {} }).sweeps)
  const mayOperate = mayRole(desk.who.role, 'operate')
  const nameOf = (member: string) => member.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return framed(desk, {
    title: consoleTexts.work,
    body: html`
<section class="card">
  <div class="tight"><h2>${texts.steps}</h2><p class="quiet">${texts.stepsAbout}</p></div>
  ${refusalNote(steps)}
  ${listOf(
    rows.map(({ id, kind, status, createdAt, lastError }) =>
      noteRow(
        inEnglish(kind),
        [
          texts.stepSince({ state: wordFor(stepStates, status), time: minuteOf(createdAt) }),
          lastError !== null && inEnglish(lastError),
        ],
        mayOperate
          ? html`<div class="stack">${actForm(desk, { id: `retry-${id}`, act: 'retry-steps', back: '/admin/work', button: texts.retry, fields: { id } })}${actForm(desk, { id: `drop-${id}`, act: 'drop-steps', back: '/admin/work', button: texts.drop, isDangerous: true, fields: { id } })}</div>`
          : null,
      ),
    ),
    texts.noSteps,
  )}
  ${moreLink(desk, next)}
</section>
<section class="card">
  <div class="tight"><h2>${texts.sweeps}</h2><p class="quiet">${texts.sweepsAbout}</p></div>
  ${
    mayOperate &&
    actForm(desk, {
      id: 'sweep',
      act: 'sweep',
      back: '/admin/work',
      button: texts.runNow,
      inputs: html`
<div class="field">
  <label for="name">${texts.sweep}</label>
  <select id="name" name="name">${sweeps.map(([member]) => html`<option lang="en">${nameOf(member)}</option>`)}</select>
</div>`,
    })
  }
  ${listOf(
    sweeps.map(([member, last]) => {
      const name = nameOf(member)
      const { completedAt, ...report } = last ?? { completedAt: null }
      return noteRow(inEnglish(name), [
        completedAt === null
          ? texts.notYet
          : texts.last({ time: minuteOf(new Date(completedAt * 1000).toISOString()) }),
        last !== null && inEnglish(countsIn(report)),
      ])
    }),
    texts.noSweeps,
  )}
</section>`,
  })
}

/** Subscribers on a page: each names itself, with two hundred characters at most. */
const SUBSCRIBER_ROWS = 50

interface Network {
  links: { name: string; state: string; text: string; remedy?: string }[]
  subscribers: { address: string; program: string | null; since: string; seq: number | null }[]
}

export async function networkPage(desk: Desk): Promise<Response> {
  const answer = await ask(desk, '/v1/admin/network')
  const { links, subscribers } = bodyOf<Network>(answer, { links: [], subscribers: [] })
  const { shown, more } = pieceOf(desk, subscribers, SUBSCRIBER_ROWS)
  return framed(desk, {
    title: consoleTexts.network,
    body: html`
<section class="card">
  <div class="tight"><h2>${texts.way}</h2><p class="quiet">${texts.wayAbout}</p></div>
  ${refusalNote(answer)}
  ${listOf(
    links.map(({ name, state, text, remedy }) =>
      noteRow(examined(name, state), [
        inEnglish(text),
        state !== 'ok' && remedy !== undefined && consoleTexts.whatToDo({ remedy: inEnglish(remedy) }),
      ]),
    ),
    texts.nothingLooked,
  )}
  ${mayRole(desk.who.role, 'operate') && actForm(desk, { id: 'crawl', act: 'crawl', back: '/admin/network', button: texts.crawl })}
</section>
<section class="card">
  <h2>${texts.subscribers}</h2>
  ${listOf(
    shown.map(({ address, program, since, seq }) =>
      noteRow(program ?? address, [
        address,
        seq === null ? consoleTexts.since({ time: minuteOf(since) }) : texts.atEvent({ time: minuteOf(since), seq }),
      ]),
    ),
    texts.noSubscribers,
  )}
  ${more}
</section>`,
  })
}

/** The numbers of a report, in words. */
const countsIn = (report: Readonly<Record<string, unknown>>): string =>
  Object.entries(report)
    .flatMap(([what, count]) => (typeof count === 'number' ? [`${what} ${count}`] : []))
    .join(', ')
