/** Somebody with a wallet, who runs `holdfast wallet` inside the test and answers what it asks. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import type { Terminal } from '../../../src/commands/command.ts'
import { WalletFile } from '../../../src/wallet/wallet-file.ts'
import type { WalletContents } from '../../../src/wallet/wallet-contents.ts'

export const PASSPHRASE = 'a passphrase for tests'
/** The least cost, because tests open many wallets. */
const WORK_FACTOR = 10

export interface WalletRun {
  code: number
  out: string
  err: string
  /** The questions, in order. */
  asked: string[]
}

type Answers = Readonly<Record<string, string | (() => string)>>

export class WalletUser implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-wallet-'))

  /** `now` is the clock of the device. */
  constructor(readonly now: () => number = Date.now) {}

  path = (device = 'wallet'): string => join(this.folder, `${device}.age`)

  /**
   * Run `holdfast wallet`. `answers` go to the questions that contain their names; without them there is nobody to ask.
   * `device` names the wallet file, `input` has the lines of the standard input.
   */
  async run(
    words: string[],
    {
      answers,
      device,
      passphrase = PASSPHRASE,
      workFactor = WORK_FACTOR,
      input = [],
    }: { answers?: Answers; device?: string; passphrase?: string; workFactor?: number; input?: string[] } = {},
  ): Promise<WalletRun> {
    const [out, err, asked] = [[], [], []] as [string[], string[], string[]]
    const lines = [...input]
    const { promise: never } = Promise.withResolvers<void>()
    const terminal: Terminal = {
      env: {
        HOLDFAST_WALLET_PASSPHRASE: passphrase,
        HOLDFAST_WALLET_WORK_FACTOR: String(workFactor),
        HOME: this.folder,
      },
      readFile: (path) => readFileSync(path, 'utf8'),
      out: (text) => void out.push(text),
      err: (text) => void err.push(text),
      outputClosed: () => never,
      isInteractive: answers !== undefined,
      ask: async (question) => {
        asked.push(question)
        return answerTo(question, answers ?? {})
      },
      nextLine: async () => lines.shift() ?? null,
      now: this.now,
      pause: () => Promise.reject(new Error('nothing is waited for')),
      self: 'holdfast',
    }
    const code = await runCommand(terminal, ['wallet', ...words, '--file', this.path(device)])
    return { code, out: out.join('\n'), err: err.join('\n'), asked }
  }

  /** Run it, and fail unless it succeeds. Returns what it printed. */
  async do(words: string[], how: Parameters<WalletUser['run']>[1] = {}): Promise<string> {
    const { code, out, err } = await this.run(words, how)
    if (code !== 0) throw new Error(`holdfast wallet ${words.join(' ')} ended with ${code}: ${err}`)
    return out
  }

  async contents(device?: string): Promise<WalletContents> {
    return (await WalletFile.open(this.path(device), PASSPHRASE, WORK_FACTOR)).contents
  }

  /** Put a wallet in place that a test has prepared. */
  async keep(contents: WalletContents, device?: string): Promise<void> {
    const path = this.path(device)
    rmSync(path, { force: true })
    await WalletFile.fresh(path, PASSPHRASE, WORK_FACTOR).write(contents)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function answerTo(question: string, answers: Answers): string {
  const name = Object.keys(answers).find((part) => question.includes(part))
  if (name === undefined) throw new Error(`nobody expected the question "${question}"`)
  const answer = answers[name]!
  return typeof answer === 'string' ? answer : answer()
}

/** The command that makes `<name>.test`, with a code or without one. `place`: the options that say where. */
export const createWords = (place: readonly string[], name: string, code?: string): string[] => [
  'create',
  ...place,
  '--handle',
  `${name}.test`,
  '--email',
  `${name}@example.com`,
  ...(code === undefined ? [] : ['--code', code]),
]

/** The words of the share that a command printed, in one line. */
export function printedShare(out: string): string {
  const words = /keep it where you will find it without this device:\n\n((?: {2}[a-z ]+\n)+)/.exec(out)?.[1]
  if (words === undefined) throw new Error(`no share was printed:\n${out}`)
  return words.trim().split(/\s+/).join(' ')
}
