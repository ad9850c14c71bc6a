/**
 * The example of docs/cluster.md on one machine: PostgreSQL, an S3 server, three nodes and a load balancer, all from
 * npm packages.
 *
 *   bun tests/system/cluster/example.ts            start it, and leave it running until Ctrl-C
 *   bun tests/system/cluster/example.ts --smoke    start it, run the smoke tests against the balancer, and end
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBalancer } from '../../support/servers/balancer.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { testDatabase } from '../../support/servers/postgres.ts'
import { type RunningServer, startProgram } from '../../support/servers/program.ts'

/** The operator's token at each node. */
export const EXAMPLE_TOKEN = 'token-of-the-example'

const NAMES = ['one', 'two', 'three']

export interface ExampleNode {
  readonly name: string
  /** Its configuration. */
  readonly env: Record<string, string>
  readonly server: RunningServer
  /** Start it again after it ended. */
  restart(): Promise<void>
}

export interface Example extends AsyncDisposable {
  /** The address of the balancer, which is the public one. */
  readonly url: string
  readonly nodes: readonly ExampleNode[]
  /** Wait until the balancer has so many nodes to choose from. */
  untilReady(count: number): Promise<void>
}

interface ExampleOptions {
  /** More configuration for all nodes. */
  env?: Record<string, string>
  /** Where each node finds the database, which is one of the example's own if this is missing. */
  databaseUrls?: readonly string[]
}

export async function startExample({ env = {}, databaseUrls = [] }: ExampleOptions = {}): Promise<Example> {
  await using resources = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cluster-'))
  resources.defer(() => rmSync(folder, { recursive: true, force: true }))
  const { databaseUrl, drop } =
    databaseUrls.length > 0 ? { databaseUrl: '', drop: async () => {} } : await testDatabase()
  resources.defer(drop)
  const { mirror: bucket } = resources.use(await startBucket())
  const ports = await Promise.all(NAMES.map(() => freePort()))
  const balancer = resources.use(await startBalancer(ports.map((port) => `http://127.0.0.1:${port}`)))

  // What all nodes share. A node has a name, a port and a data directory of its own.
  const shared = {
    SERVICE_PUBLIC_URL: balancer.url,
    SERVICE_AVAILABLE_USER_DOMAINS: 'test',
    SERVICE_DATABASE_URL: databaseUrl,
    SERVICE_SIGNING_KEY_MASTER_KEY: randomBytes(32).toString('hex'),
    SERVICE_ADMIN_TOKEN: EXAMPLE_TOKEN,
    SERVICE_BLOBS_STORE: 's3',
    SERVICE_BLOBS_S3_BUCKET: bucket.bucket,
    SERVICE_BLOBS_S3_ENDPOINT: bucket.endpoint,
    SERVICE_BLOBS_S3_ACCESS_KEY_ID: bucket.accessKeyId,
    SERVICE_BLOBS_S3_SECRET_ACCESS_KEY: bucket.secretAccessKey.reveal(),
    SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
    ...env,
  }
  const environmentOf = (i: number) => ({
    ...shared,
    SERVICE_NODE_NAME: NAMES[i]!,
    SERVICE_PORT: String(ports[i]!),
    SERVICE_DATA_DIR: join(folder, NAMES[i]!),
    ...(databaseUrls[i] !== undefined && { SERVICE_DATABASE_URL: databaseUrls[i] }),
  })
  // `dev` because it brings a PLC directory, which the nodes share with their database.
  const start = (i: number) => startProgram(['dev'], environmentOf(i), folder)
  const nodes = await Promise.all(
    NAMES.map(async (name, i) => {
      let server = await start(i)
      resources.defer(() => server[Symbol.asyncDispose]())
      return {
        name,
        env: environmentOf(i),
        get server() {
          return server
        },
        async restart() {
          server = await start(i)
        },
      }
    }),
  )
  await balancer.untilReady(nodes.length)
  const held = resources.move()
  return { url: balancer.url, nodes, untilReady: balancer.untilReady, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

/** The node that numbers events now, as the first of `asked` says. */
export async function sequencerOf({ nodes }: Example, asked = nodes): Promise<ExampleNode> {
  const { body } = await request(`${asked[0]!.server.url}/v1/admin/cluster`, {
    headers: { authorization: `Bearer ${EXAMPLE_TOKEN}` },
  })
  const lease = (body.leases as { name: string; holder: { name: string } | null }[]).find(
    ({ name }) => name === 'event-numbers',
  )
  return nodes.find(({ name }) => name === lease?.holder?.name) ?? nodes[0]!
}

if (import.meta.main) {
  await using example = await startExample()
  const places = example.nodes.map(({ name, server }) => `${name} at ${server.url}`)
  console.log(`The service is at ${example.url}; its nodes are ${places.join(', ')}.`)
  if (process.argv.includes('--smoke')) {
    const smoke = Bun.spawn([process.execPath, 'test', '--timeout', '30000', join(import.meta.dir, '../../smoke')], {
      env: { ...process.env, SMOKE_URL: example.url },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    process.exitCode = await smoke.exited
  } else await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve))
}
