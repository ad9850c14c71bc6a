/** The reference PDS as a process of its own, with an empty folder. `npm run test:peers` installs it. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/ports.ts'

/**
 * Where it is installed, with a `node_modules` of its own. Not beside this file: what goes through the files of the
 * tests would go through those of the packages too.
 */
export const PEERS = join(import.meta.dir, '../../node_modules/.cache/holdfast-peers')
export const BINDING = join(PEERS, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node')
export const REFERENCE_ADMIN_PASSWORD = 'the password of its operator'

export const referenceNode = (): string => {
  const packaged = ['linux-x64', 'darwin-x64']
    .map((platform) => join(PEERS, `node_modules/node-${platform}/bin/node`))
    .find((path) => existsSync(path))
  const found = packaged ?? Bun.which('node')
  if (!found) throw new Error('there is no Node for the reference')
  return found
}

export interface Reference extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** Its data folder, with its environment in `pds.env`. */
  readonly folder: string
  /** Stop it, and leave its folder. */
  stop(): Promise<void>
}

export interface Surroundings {
  plcUrl: string
  /** `smtp://host:port`, for the codes it mails. */
  smtpUrl: string
  /** Handles are names under it, `.peer.test`. */
  handleDomain: string
  appview?: { url: string; did: string }
}

const START_MILLIS = 60_000

export async function startReference({ plcUrl, smtpUrl, handleDomain, appview }: Surroundings): Promise<Reference> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-peer-'))
  const [port, blobs, temporary] = [await freePort(), join(folder, 'blobs'), join(folder, 'tmp')]
  for (const each of [blobs, temporary]) mkdirSync(each)
  const settings = {
    PDS_DEV_MODE: 'true',
    PDS_HOSTNAME: 'localhost',
    PDS_PORT: String(port),
    PDS_DATA_DIRECTORY: folder,
    PDS_BLOBSTORE_DISK_LOCATION: blobs,
    PDS_BLOBSTORE_DISK_TMP_LOCATION: temporary,
    PDS_DID_PLC_URL: plcUrl,
    // The directory, and the other server, are on this machine.
    PDS_DISABLE_SSRF_PROTECTION: 'true',
    PDS_SERVICE_HANDLE_DOMAINS: handleDomain,
    PDS_INVITE_REQUIRED: 'false',
    PDS_RATE_LIMITS_ENABLED: 'false',
    PDS_EMAIL_SMTP_URL: smtpUrl,
    PDS_EMAIL_FROM_ADDRESS: 'peer@example.com',
    PDS_ADMIN_PASSWORD: REFERENCE_ADMIN_PASSWORD,
    PDS_JWT_SECRET: '5e'.repeat(32),
    PDS_DPOP_SECRET: '6f'.repeat(32),
    PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX: '3a'.repeat(32),
    ...(appview ? { PDS_BSKY_APP_VIEW_URL: appview.url, PDS_BSKY_APP_VIEW_DID: appview.did } : {}),
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(join(folder, 'pds.env'), lines.join(''))
  const child = spawn(referenceNode(), ['start.mjs'], {
    cwd: PEERS,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      TMPDIR: temporary,
      NODE_ENV: 'production',
      LOG_ENABLED: 'false',
      UV_USE_IO_URING: '0',
      ...settings,
    },
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = `http://localhost:${port}`
  await healthy(url, () => child.exitCode !== null)
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
  }
  return {
    url,
    port,
    folder,
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function healthy(url: string, hasEnded: () => boolean): Promise<void> {
  const deadline = performance.now() + START_MILLIS
  for (;;) {
    const answer = await fetch(`${url}/xrpc/_health`).catch(() => null)
    if (answer?.ok) return
    if (hasEnded() || performance.now() > deadline) throw new Error('the reference does not start')
    await Bun.sleep(50)
  }
}
