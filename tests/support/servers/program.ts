/**
 * The program as a process of its own, with a folder and an environment that hold nothing else. It is the executable,
 * which starts in a third of the time that the source takes.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { liftFileLimit } from '../faults/process-limits.ts'
import { builtExecutable } from './executable.ts'

export const PROGRAM = [await builtExecutable()]

/** The program from its source. */
export const SOURCE = [process.execPath, join(import.meta.dir, '../../../src/main.ts')]

export interface Ended {
  code: number
  out: string
  err: string
}

/** The program as a user who may not do everything; as whoever runs the tests, unless that is root. */
export const asOrdinaryUser: string[] =
  process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', ...PROGRAM] : PROGRAM

/** The program with the rights that its user has as the owner of files: root may open what is shut. */
export const withoutPrivileges: string[] =
  process.getuid?.() === 0
    ? ['setpriv', ...['bounding-set', 'inh-caps'].map((set) => `--${set}=-dac_override,-dac_read_search`), ...PROGRAM]
    : PROGRAM

/** The program in a shell that does something first: `umask 000`. */
export const after = (preparation: string): string[] => ['sh', '-c', `${preparation}; exec "$@"`, 'sh', ...PROGRAM]

/** Run it to its end, with `input` on its standard input. */
export async function runProgram(
  words: string[],
  env: Record<string, string> = {},
  program = PROGRAM,
  input?: string,
): Promise<Ended> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  // Whoever runs it looks for a configuration here.
  chmodSync(folder, 0o755)
  try {
    const child = spawn(words, env, folder, program, [], input)
    const [code, out, err] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    return { code, out, err }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Run it at a terminal, and type what belongs to each question once it is asked, or what a function then finds out.
 * Returns all that the screen showed.
 */
export async function typeAtProgram(
  words: string[],
  env: Record<string, string>,
  answers: readonly (readonly [question: string, keys: string | (() => Promise<string>)])[],
  program = PROGRAM,
): Promise<{ code: number; screen: string }> {
  const left = [...answers]
  let screen = ''
  let seen = 0
  const child = Bun.spawn([...program, ...words], {
    cwd: tmpdir(),
    env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), TERM: 'xterm', ...env },
    terminal: {
      cols: 200,
      rows: 50,
      data(terminal, chunk) {
        screen += new TextDecoder().decode(chunk)
        const [question, keys] = left[0] ?? []
        if (question === undefined || !screen.includes(question, seen)) return
        seen = screen.length
        left.shift()
        if (typeof keys === 'function') void keys().then((typed) => terminal.write(typed))
        else terminal.write(keys!)
      },
    },
  })
  const code = await child.exited
  child.terminal?.close()
  return { code, screen }
}

/** Run it until its standard output shows something, then end it. */
export async function watchProgram(words: string[], shows: RegExp): Promise<string> {
  const child = spawn(words, {}, tmpdir())
  let output = ''
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    output += chunk
    if (shows.test(output)) break
  }
  child.kill()
  await child.exited
  return output
}

export interface StartingServer extends AsyncDisposable {
  /** Its URL, once it listens. Rejects if it ends before. */
  listening: Promise<string>
  /** Of the process, if it runs without a limit of files. */
  pid: number
  /** Everything written to standard output so far; and to standard error, once it has ended. */
  output(): string
  signal(name: NodeJS.Signals): void
  exited: Promise<number>
  /** From now on files may grow as they like. */
  liftFileLimit(): void
}

export interface RunningServer extends StartingServer {
  url: string
}

export interface StartOptions {
  /** Another command line than that of the executable. */
  program?: string[]
  maxFileBytes?: number
}

/**
 * Run `dev` or `serve` until it listens. `folder` is its working directory. Files that grow beyond `maxFileBytes` meet
 * a full disk.
 */
export async function startProgram(
  words: string[],
  env: Record<string, string>,
  folder: string,
  options: StartOptions = {},
): Promise<RunningServer> {
  const starting = beginProgram(words, env, folder, options)
  return { ...starting, url: await starting.listening }
}

/** The same, without waiting until it listens. */
export function beginProgram(
  words: string[],
  env: Record<string, string>,
  folder: string,
  { program = PROGRAM, maxFileBytes }: StartOptions = {},
): StartingServer {
  const child = spawn(
    words,
    env,
    folder,
    program,
    maxFileBytes === undefined ? [] : ['sh', '-c', `ulimit -Sf ${Math.floor(maxFileBytes / 512)}; exec "$@"`, 'sh'],
  )
  const { listening, output, ended } = readOutput(child.stdout, child.stderr)
  return {
    listening,
    pid: child.pid,
    output,
    signal: (name) => child.kill(name),
    exited: child.exited,
    liftFileLimit: () => liftFileLimit(child.pid),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await Promise.all([child.exited, ended])
    },
  }
}

/** What a server writes, read to its end. `listening` resolves to its URL, or rejects when it ends before. */
export function readOutput(
  stdout: ReadableStream<Uint8Array<ArrayBuffer>>,
  stderr: ReadableStream<Uint8Array<ArrayBuffer>> | null,
) {
  let output = ''
  const { promise: listening, resolve, reject } = Promise.withResolvers<string>()
  const ended = (async () => {
    for await (const chunk of stdout.pipeThrough(new TextDecoderStream())) {
      output += chunk
      const url = /\burl"?[=:]"?(http:[^\s",]+)/.exec(output)?.[1]
      if (url !== undefined) resolve(url)
    }
    if (stderr !== null) output += await new Response(stderr).text()
    reject(new Error(`the program ended before it listened:\n${output}`))
  })()
  return { listening, output: () => output, ended }
}

const spawn = (
  words: string[],
  env: Record<string, string>,
  folder: string,
  program = PROGRAM,
  wrapper: string[] = [],
  input?: string,
) =>
  Bun.spawn([...wrapper, ...program, ...words], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...env },
    stdin: input === undefined ? 'ignore' : new Blob([input]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
