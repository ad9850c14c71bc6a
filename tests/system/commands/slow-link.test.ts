/** Uploads of commands over a slow link: the runtime would end them after five minutes. */
import { expect, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fetchJson } from '../../../src/base/server-request.ts'
import { Server } from '../../../src/commands/operator-server.ts'

test('an upload of a command has no bound of the runtime', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-upload-'))
  await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({}) })
  const url = `http://127.0.0.1:${server.port}`
  using fetched = spyOn(globalThis, 'fetch')
  try {
    writeFileSync(join(dir, 'archive'), 'bytes')
    await new Server(url, 'token').upload('/upload', join(dir, 'archive'), 'application/zip')
    await fetchJson(`${url}/upload`, { method: 'POST', body: 'bytes' })
    expect(fetched.mock.calls.map(([, how]) => (how as { timeout?: unknown }).timeout)).toEqual([false, false])
  } finally {
    rmSync(dir, { recursive: true })
  }
})
