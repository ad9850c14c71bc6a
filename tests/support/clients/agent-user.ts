/** Somebody who runs `holdfast agent` inside the test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import type { Terminal } from '../../../src/commands/command.ts'
import type { TestClock } from '../clock.ts'
import type { WalletRun } from './wallet-user.ts'

export class AgentUser implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-agent-'))
  readonly path = join(this.folder, 'agent.age')
  readonly env: Record<string, string> = { HOME: this.folder, HOLDFAST_AGENT_WORK_FACTOR: '10' }
  /** How long the commands have waited, in milliseconds. */
  readonly pauses: number[] = []
  /** What happens at each wait. */
  whenPausing: () => Promise<unknown> = async () => undefined

  /** `clock` is the one of the server: waiting advances it. */
  constructor(readonly clock: Pick<TestClock, 'now' | 'advance'>) {}

  readonly now = (): number => this.clock.now()

  readonly pause = async (millis: number): Promise<void> => {
    this.pauses.push(millis)
    this.clock.advance({ secs: millis / 1000 })
    await this.whenPausing()
  }

  async run(words: string[], input: string | null = null): Promise<WalletRun> {
    const [out, err]: [string[], string[]] = [[], []]
    const { promise: never } = Promise.withResolvers<void>()
    const lines = input === null ? [] : input.split('\n')
    const terminal: Terminal = {
      env: this.env,
      readFile: (path) => readFileSync(path, 'utf8'),
      out: (text) => void out.push(text),
      err: (text) => void err.push(text),
      outputClosed: () => never,
      isInteractive: false,
      ask: () => Promise.reject(new Error('there is nobody to ask')),
      nextLine: async () => lines.shift() ?? null,
      now: this.now,
      pause: this.pause,
      self: 'holdfast',
    }
    const code = await runCommand(terminal, ['agent', ...words, '--file', this.path])
    return { code, out: out.join('\n'), err: err.join('\n'), asked: [] }
  }

  /** Run it, and fail unless it succeeds. Returns what it printed. */
  async do(words: string[], input: string | null = null): Promise<string> {
    const { code, out, err } = await this.run(words, input)
    if (code !== 0) throw new Error(`holdfast agent ${words.join(' ')} ended with ${code}: ${err}`)
    return out
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The code in what a command or a tool says. */
export function shownCode(text: string): string {
  const code = /\b\d{6}\b/.exec(text)?.[0]
  if (code === undefined) throw new Error(`no code was shown:\n${text}`)
  return code
}
