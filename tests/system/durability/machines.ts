/** Two machines and a bucket, between which each has a line of its own. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { startTcpLine, type TcpLine } from '../../support/faults/tcp-line.ts'
import { freePort } from '../../support/ports.ts'
import type { BucketHost } from '../../support/servers/bucket-host.ts'
import { beginProgram, type StartingServer } from '../../support/servers/program.ts'

export const TAKEOVER_SECS = 3

/** What befalls a machine that serves. */
export const faults = ['kill', 'freeze', 'cut off', 'silence'] as const
export type Fault = (typeof faults)[number]

export class Machine {
  server: StartingServer | null = null
  /** How its process ended; null while it runs. */
  ended: string | null = null

  private constructor(
    readonly url: string,
    readonly folder: string,
    readonly line: TcpLine,
    readonly env: Record<string, string>,
  ) {}

  static async make(scratch: string, name: string, { mirror }: BucketHost, shared: Record<string, string>) {
    const folder = join(scratch, name)
    mkdirSync(folder)
    const line = await startTcpLine(mirror.endpoint)
    const port = await freePort()
    return new Machine(`http://localhost:${port}`, folder, line, {
      ...shared,
      PORT: String(port),
      SERVICE_NODE_NAME: name,
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_BACKUP_CONTINUOUS: `s3://${mirror.bucket}/storm`,
      SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
      SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
      SERVICE_BACKUP_TAKEOVER_SECS: String(TAKEOVER_SECS),
      SERVICE_BLOB_MIRROR_ENDPOINT: line.url,
      SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: mirror.accessKeyId,
      SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: mirror.secretAccessKey.reveal(),
      SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
    })
  }

  begin(command: 'dev' | 'follow'): void {
    const server = beginProgram(command === 'dev' ? ['dev'] : ['follow', '--dev'], this.env, this.folder)
    // It may end before it listens.
    server.listening.catch(() => undefined)
    this.ended = null
    this.server = server
    void server.exited.then((code) => (this.ended = `it ended with ${code}:\n${server.output()}`))
  }

  strike(fault: Fault): void {
    if (fault === 'kill') this.server!.signal('SIGKILL')
    if (fault === 'freeze') this.server!.signal('SIGSTOP')
    if (fault === 'cut off') this.line.state = 'cut'
    if (fault === 'silence') this.line.state = 'silent'
  }

  /** The fault is over. Resolves when the machine, which was replaced, has stopped. */
  async recover(): Promise<void> {
    this.server!.signal('SIGCONT')
    this.line.state = 'open'
    await this.server!.exited
    this.server = null
  }

  /** What it says of itself; nothing if it does not answer. */
  async state() {
    try {
      return (await request(`${this.url}/readyz`)).body
    } catch {
      return {}
    }
  }

  /** Whether it promises that nothing acknowledged is lost. */
  async promises(): Promise<boolean> {
    return (await this.state()).continuousBackup?.promise === 'sync'
  }

  async hasCopy(): Promise<boolean> {
    if (this.ended !== null) throw new Error(this.ended)
    const { role, behindMillis, fault } = await this.state()
    return role === 'follower' && behindMillis !== null && behindMillis < 1000 && fault === null
  }

  async end(): Promise<void> {
    await this.server?.[Symbol.asyncDispose]()
    await this.line[Symbol.asyncDispose]()
  }
}
