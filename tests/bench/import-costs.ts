/**
 * What an import costs: time, work, and memory beside the size of the archive.
 *
 *   bun tests/bench/import-costs.ts [records in the repository, 1000 10000 50000 200000]
 *
 * Each archive goes to a server of its own, which has taken over a small one before. PROGRAM names another one than the
 * source beside this file, as in `PROGRAM=dist/holdfast`.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Data } from '../../src/protocol/cbor.ts'
import { cidOfCbor } from '../../src/protocol/cid.ts'
import { signingKey } from '../../src/protocol/keys.ts'
import { nextTid } from '../../src/protocol/tid.ts'
import { createAccount } from '../support/clients/account.ts'
import { archiveOf, post } from '../support/archive.ts'
import { bearer, request } from '../support/clients/http.ts'
import { memoryMiB } from '../support/process-memory.ts'
import { readOutput } from '../support/servers/program.ts'

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1000, 10_000, 50_000, 200_000]
const program = process.env['PROGRAM']?.split(' ') ?? [process.execPath, join(import.meta.dir, '../../src/main.ts')]
const key = signingKey('p256', new Uint8Array(32).fill(7))
const MEBIBYTE = 1024 ** 2
const TICKS_PER_SEC = 100

/** Posts, likes, reposts and follows, as people have them. */
function mixed(count: number): Record<string, Data> {
  const records: Record<string, Data> = {}
  for (let i = 0; i < count; i++) {
    const createdAt = new Date(1_700_000_000_000 + i * 1000).toISOString()
    const rkey = nextTid(null, 1_700_000_000_000_000 + i * 1_000_000, i % 1024)
    const cid = cidOfCbor(Buffer.from(`${i}`)).toString()
    const did = `did:plc:${cid.slice(9, 33)}`
    const subject = { uri: `at://${did}/app.bsky.feed.post/${rkey}`, cid }
    const kind = i % 10
    if (kind < 4)
      records[`app.bsky.feed.post/${rkey}`] = post(`${i} `.padEnd(40 + ((i * 7919) % 200), `${cid} `), {
        createdAt,
        langs: ['en'],
        ...(kind === 0 && { reply: { root: subject, parent: subject } }),
      })
    else if (kind < 8) records[`app.bsky.feed.like/${rkey}`] = { $type: 'app.bsky.feed.like', subject, createdAt }
    else if (kind < 9) records[`app.bsky.feed.repost/${rkey}`] = { $type: 'app.bsky.feed.repost', subject, createdAt }
    else records[`app.bsky.graph.follow/${rkey}`] = { $type: 'app.bsky.graph.follow', subject: did, createdAt }
  }
  return records
}

async function startServer(folder: string) {
  const env = {
    ...process.env,
    HOME: folder,
    SERVICE_DATA_DIR: folder,
    SERVICE_PUBLIC_URL: 'http://localhost:2583',
    SERVICE_PORT: '0',
    SERVICE_RATE_LIMIT_ENABLED: 'false',
  }
  const child = Bun.spawn([...program, 'dev'], { cwd: folder, env, stdout: 'pipe', stderr: 'inherit' })
  return { child, url: await readOutput(child.stdout, null).listening }
}

function cpuSecs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SEC
}

console.log(
  '| Records | Archive | Time | CPU | Memory before | Most during | Database |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
)
for (const size of sizes) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  const { child, url } = await startServer(folder)
  const importInto = async (name: string, count: number) => {
    const account = await createAccount({ url }, name)
    const { bytes } = archiveOf(account.did, nextTid(null, Date.now() * 1000, 7), mixed(count), key)
    // The highest memory so far begins anew.
    writeFileSync(`/proc/${child.pid}/clear_refs`, '5')
    const before = { at: performance.now(), cpu: cpuSecs(child.pid), memory: memoryMiB(child.pid, 'VmRSS') }
    const { status } = await request(`${url}/xrpc/com.atproto.repo.importRepo`, {
      method: 'POST',
      body: bytes as Uint8Array<ArrayBuffer>,
      headers: { 'content-type': 'application/vnd.ipld.car', ...bearer(account.accessJwt) },
    })
    if (status !== 200) throw new Error(`the import answered ${status}`)
    return {
      archive: bytes.length / MEBIBYTE,
      secs: (performance.now() - before.at) / 1000,
      cpu: cpuSecs(child.pid) - before.cpu,
      before: before.memory,
      most: memoryMiB(child.pid, 'VmHWM'),
    }
  }
  await importInto('first', 1000)
  const { archive, secs, cpu, before, most } = await importInto('second', size)
  child.kill()
  await child.exited
  const database = statSync(join(folder, 'holdfast.db')).size / MEBIBYTE
  const row = [
    size.toLocaleString('en'),
    `${archive.toFixed(1)} MiB`,
    `${secs.toFixed(2)} s`,
    `${cpu.toFixed(2)} s`,
    ...[before, most, database].map((mebibytes) => `${mebibytes.toFixed(0)} MiB`),
  ]
  console.log(`| ${row.join(' | ')} |`)
  rmSync(folder, { recursive: true, force: true })
}
