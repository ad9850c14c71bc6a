/** The `Terminal` of the running process. */
import { fstatSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { printable } from '../base/printable.ts'
import { isCompiled } from '../platform/running/self.ts'
import { exitCodes, Interrupted, type Terminal } from './command.ts'

const STDOUT = 1

/**
 * Unless `outputIsLog`, the process exits with status 1 if standard output cannot be written, whatever the command
 * returns. Reports the first error only.
 */
export function processTerminal({ outputIsLog }: { outputIsLog: boolean }): Terminal {
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  let isReported = false
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    close()
    if (code === 'EPIPE') return
    if (!outputIsLog) process.exitCode = exitCodes.failed
    if (!isReported) process.stderr.write(`holdfast: standard output: ${message}\n`)
    isReported = true
  })
  // Ignore errors of standard error: there is no other channel to report them on.
  process.stderr.on('error', () => {})

  return {
    env: process.env,
    readFile(path) {
      try {
        return readFileSync(path, 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
    },
    out: (text) => void process.stdout.write(`${printable(text)}\n`),
    err: (text) => void process.stderr.write(`${printable(text)}\n`),
    isInteractive: process.stdin.isTTY && process.stderr.isTTY,
    ask,
    nextLine: lines(),
    now: Date.now,
    pause: (millis) => sleep(millis),
    outputClosed: () => Promise.race([closed, pipeClosed()]),
    self: isCompiled ? basename(process.execPath) : 'npx bun src/main.ts',
  }
}

async function ask(text: string, { hidden } = { hidden: false }): Promise<string> {
  const question = printable(text)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const { createInterface } = await import('node:readline/promises')
  const reader = createInterface({ input: process.stdin, output: hidden ? nowhere : process.stderr, terminal: true })
  // Prompt only after readline has turned the echo off.
  if (hidden) process.stderr.write(question)
  const { promise: ended, reject } = Promise.withResolvers<never>()
  for (const end of ['SIGINT', 'close']) reader.once(end, () => reject(new Interrupted()))
  try {
    return await Promise.race([reader.question(hidden ? '' : question), ended])
  } finally {
    reader.close()
    if (hidden) process.stderr.write('\n')
  }
}

/** Read all of standard input at the first call, then return one line per call. One input can thus hold two secrets. */
function lines(): () => Promise<string | null> {
  let rest: Promise<string[]> | null = null
  return async () =>
    (await (rest ??= Bun.stdin.text().then((text) => text.replace(/\r?\n$/, '').split(/\r?\n/)))).shift() ?? null
}

/** Resolves when standard output is a pipe and its reader goes away, even if nothing is being written. */
async function pipeClosed(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (fstatSync(STDOUT).isFIFO()) {
    const end: Bun.FdSocketOptions = { fd: STDOUT, socket: { data() {}, close: () => resolve() } }
    // The types omit that `Bun.connect` accepts FdSocketOptions.
    const watch = await Bun.connect(end as Bun.FdSocketOptions & Bun.TCPSocketConnectOptions)
    watch.unref()
  }
  return promise
}
