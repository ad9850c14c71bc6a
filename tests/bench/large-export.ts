/**
 * What the export of a large repository costs: time of the main thread and of all threads, and memory.
 *
 *     bun tests/bench/large-export.ts [--records 1000000] [--chars 290] [--rounds 6] [--coding gzip] [--folder FOLDER]
 *
 * Linux only. With 290 characters of text, a record takes 575 bytes of the archive, and with 254 it takes 538. The
 * repository is filled by requests, which takes minutes, and kept in FOLDER if one is given: another run with the same
 * folder measures at once. The server is started anew before it is measured. PROGRAM names another one than the source
 * beside this file, as in `PROGRAM=dist/holdfast`.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createAccount, PASSWORD } from '../support/clients/account.ts'
import { bearer, request } from '../support/clients/http.ts'
import { freePort } from '../support/ports.ts'
import { memoryMiB } from '../support/process-memory.ts'
import { publicService, ranBetween, threadsOf } from '../support/request-cost.ts'
import { until } from '../support/until.ts'

const { values: options } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    chars: { type: 'string', default: '290' },
    rounds: { type: 'string', default: '6' },
    coding: { type: 'string', default: 'identity' },
    folder: { type: 'string' },
  },
})
const RECORDS = Number(options.records)
const CHARS = Number(options.chars)
const BATCH = 200
const AT_ONCE = 4
const MEGABYTE = 1e6
const MICROS_PER_SEC = 1e6
const program = process.env['PROGRAM']?.split(' ') ?? [process.execPath, join(import.meta.dir, '../../src/main.ts')]
/** Posts have at most 300 characters of text. */
const tags = ['first', 'second'].map((tag) => tag.padEnd(40, ' of them'))
const collection = 'app.bsky.feed.post'

async function startServer(folder: string) {
  const port = await freePort()
  const child = Bun.spawn([...program, 'dev'], {
    cwd: folder,
    env: {
      ...process.env,
      HOME: folder,
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_PORT: String(port),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      ...publicService,
    },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  const url = `http://127.0.0.1:${port}`
  await until(async () => (await fetch(`${url}/xrpc/_health`).catch(() => null))?.ok === true)
  const stop = async () => {
    child.kill('SIGINT')
    await child.exited
  }
  return { url, pid: child.pid, stop }
}

async function fill(folder: string): Promise<string> {
  const { url, stop } = await startServer(folder)
  const { did, handle } = await createAccount({ url }, 'alice')
  const session = async () => {
    const { body } = await request(`${url}/xrpc/com.atproto.server.createSession`, {
      json: { identifier: handle, password: PASSWORD },
    })
    return bearer(body.accessJwt as string)
  }
  let headers = await session()
  const batches = Array.from({ length: RECORDS / BATCH }).keys()
  const hand = async () => {
    for (const batch of batches) {
      // A session is shorter than this takes on a slow machine.
      if (batch % 500 === 0) headers = await session()
      const writes = Array.from({ length: BATCH }, (_, i) => ({
        $type: 'com.atproto.repo.applyWrites#create',
        collection,
        value: {
          $type: collection,
          text: String(batch * BATCH + i).padEnd(CHARS, ' words'),
          tags,
          createdAt: '2026-01-01T00:00:00.000Z',
        },
      }))
      const { status, body } = await request(`${url}/xrpc/com.atproto.repo.applyWrites`, {
        json: { repo: did, writes },
        headers,
      })
      if (status !== 200) throw new Error(`applyWrites returned ${status} ${JSON.stringify(body)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, hand))
  await stop()
  return did
}

const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
const filled = join(folder, 'filled')
try {
  if (!existsSync(filled)) writeFileSync(filled, await fill(folder))
  const did = readFileSync(filled, 'utf8')
  const { url, pid, stop } = await startServer(folder)
  console.log(`${RECORDS} records; resident before: ${memoryMiB(pid, 'VmRSS').toFixed(0)} MiB`)
  console.log('| MB | s of the main thread | of all threads | s in all | MiB resident at most | afterwards |')
  console.log('| ---: | ---: | ---: | ---: | ---: | ---: |')
  for (let round = 0; round < Number(options.rounds); round++) {
    // The highest memory so far begins anew.
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
    const [before, begun] = [threadsOf(pid), performance.now()]
    const response = await fetch(`${url}/xrpc/com.atproto.sync.getRepo?did=${did}`, {
      headers: { 'accept-encoding': options.coding },
    })
    let bytes = 0
    for await (const chunk of response.body!) bytes += chunk.length
    if (!response.ok) throw new Error(`getRepo returned ${response.status}`)
    const secs = (performance.now() - begun) / 1000
    const { main, all } = ranBetween(before, threadsOf(pid))
    const row = [
      (bytes / MEGABYTE).toFixed(0),
      ...[main / MICROS_PER_SEC, all / MICROS_PER_SEC, secs].map((time) => time.toFixed(2)),
      ...[memoryMiB(pid, 'VmHWM'), memoryMiB(pid, 'VmRSS')].map((mebibytes) => mebibytes.toFixed(0)),
    ]
    console.log(`| ${row.join(' | ')} |`)
  }
  await stop()
} finally {
  if (options.folder === undefined) rmSync(folder, { recursive: true, force: true })
}
