/** The board for Grafana and the rules for Prometheus that are part of a release. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serverCertificate, serverKey } from '../../support/certificates.ts'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { setUp } from '../../support/set-up.ts'

const root = join(import.meta.dir, '../../..')
const text = (path: string) => readFileSync(join(root, path), 'utf8')

interface Rule {
  alert: string
  expr: string
  for?: string
  labels: Record<string, string>
  annotations: Record<string, string>
}

interface Panel {
  id: number
  type: string
  title: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: { expr: string }[]
}

const { groups } = Bun.YAML.parse(text('release/files/prometheus-rules.yml')) as {
  groups: { name: string; rules: Rule[] }[]
}
const rules = groups.flatMap((group) => group.rules)
const board = JSON.parse(text('release/files/grafana-dashboard.json')) as {
  panels: Panel[]
  templating: { list: { definition?: string }[] }
}
const panels = board.panels.filter(({ type }) => type !== 'row')

/** Numbers events, tells alerts and encrypts connections, so that it has all metrics. */
const node = setUp(startNode, ({ end }) => end())

async function startNode() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-monitoring-'))
  const [certificateFile, keyFile] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  writeFileSync(certificateFile, serverCertificate)
  writeFileSync(keyFile, serverKey)
  const cluster = await startCluster(1, {
    alerts: { mailTo: ['operator@example.org'] },
    tls: {
      mode: 'files',
      port: await freePort(),
      httpPort: await freePort(),
      certificateFiles: [certificateFile],
      keyFiles: [keyFile],
    },
  })
  const end = async () => {
    await cluster[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  }
  return { url: cluster.nodes[0]!.url, end }
}

/** What PromQL itself has, as far as it is used here. */
const language = new Set(
  'abs and by for histogram_quantile increase label_values max min on or rate sum time topk unless vector without'.split(
    ' ',
  ),
)
/** Prometheus adds it to each target. */
const added = ['up']

/** The names in an expression that are neither labels nor part of the language. */
function metricsIn(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(?:by|without|on) \([^)]*\)/g, '')
    .replace(/label_values\((\w+), \w+\)/g, '$1')
  return (bare.match(/[a-z_][a-z0-9_]*/gi) ?? []).filter((name) => !language.has(name))
}

const isBalanced = (expression: string): boolean =>
  ['()', '{}', '[]'].every(([open, close]) => expression.split(open!).length === expression.split(close!).length) &&
  expression.split('"').length % 2 === 1

const expressions = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expression: expr })),
  ...panels.flatMap(({ title, targets }) => targets!.map(({ expr }) => ({ where: title, expression: expr }))),
  ...board.templating.list.flatMap(({ definition }) =>
    definition === undefined ? [] : [{ where: 'a variable of the board', expression: definition }],
  ),
]

test('every metric that they name is in /metrics', async () => {
  const { body } = await request(`${node.url}/metrics`)
  const there = new Set([
    ...added,
    ...Array.from((body as string).matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name, type]) =>
      type === 'histogram' ? `${name}_bucket` : name!,
    ),
  ])
  const unknown = expressions.flatMap(({ where, expression }) =>
    metricsIn(expression)
      .filter((name) => !there.has(name))
      .map((name) => `${where}: ${name}`),
  )
  expect(unknown).toEqual([])
  expect(expressions.filter(({ expression }) => metricsIn(expression).length === 0 || !isBalanced(expression))).toEqual(
    [],
  )
})

test('the reader of expressions sees metrics, and neither labels nor functions', () => {
  expect(metricsIn('sum by (job) (rate(a_total{b="c_d"}[5m])) / 2 > topk(3, x) and max(e_f)')).toEqual([
    'a_total',
    'x',
    'e_f',
  ])
  expect(isBalanced('sum(a{b="c"}[1h])')).toBe(true)
  expect(isBalanced('sum(a{b="c"}[1h]')).toBe(false)
})

test('each rule has a name of its own, a severity, and says what to do', () => {
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
  const guide = text('docs/alerts.md')
  for (const { alert, expr, labels, annotations, ...more } of rules) {
    expect([alert, labels['severity']]).toEqual([alert, expect.stringMatching(/^(?:warning|critical)$/)])
    expect([alert, annotations['summary'], annotations['description']]).toEqual([
      alert,
      expect.any(String),
      expect.any(String),
    ])
    expect(more.for ?? '1m').toMatch(/^\d+[smh]$/)
    const [, section] = /^docs\/alerts\.md#([a-z-]+)$/.exec(annotations['description']!) ?? []
    if (section !== undefined) expect(guide).toContain(`## ${section}\n`)
    expect(expr).not.toBe('')
  }
})

test('the panels of the board have ids of their own, and none covers another', () => {
  expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length)
  const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24)
    return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`)
  })
  expect(new Set(cells).size).toBe(cells.length)
})
