/**
 * The command line: run the command that the words name, print its help, or say in one sentence what is wrong with the
 * words.
 */
import { parseArgs } from 'node:util'
import {
  type Command,
  exitCodes,
  type ExitCode,
  Interrupted,
  type Invocation,
  Misuse,
  type Terminal,
} from './commands/command.ts'
import { commandNames, loadCommand, loadCommands, type NamedCommand } from './commands/commands.ts'
import { describeFailure } from './commands/failure-words.ts'
import { nearest } from './base/nearest.ts'
import { SOFTWARE, SOFTWARE_NAME } from './base/version.ts'

/** Run a command line and return its exit status. Failures are written to standard error, never thrown. */
export async function runCommand(terminal: Terminal, words: readonly string[]): Promise<ExitCode> {
  const [first, ...others] = words
  if (first === undefined) return misuse(terminal, 'a command is required', await overview())
  if (isHelp(first)) return answer(terminal, await overview())
  if (first === '--version' || first === '-v') return answer(terminal, SOFTWARE)
  if (first === 'help') return help(terminal, others)

  const name = findName(words)
  if (name === null && isHelp(others[0])) return help(terminal, [first])
  if (name === null) return misuse(terminal, unknownCommand(words), `Run "${SOFTWARE_NAME} --help" for the list.`)
  return runOne(terminal, await loadCommand(name), words.slice(wordsOf(name).length))
}

async function runOne(terminal: Terminal, command: NamedCommand, args: string[]): Promise<ExitCode> {
  if (args.some(isHelp)) return answer(terminal, helpOf(command))
  const parsed = parse(command, args)
  const advice = `Run "${SOFTWARE_NAME} ${command.name} --help" for its usage.`
  if (!parsed.ok) return misuse(terminal, parsed.fault, advice)
  try {
    return await command.run({ terminal, ...parsed.given })
  } catch (error) {
    if (error instanceof Interrupted) return exitCodes.interrupted
    if (error instanceof Misuse) return misuse(terminal, error.message, advice)
    terminal.err(`${SOFTWARE_NAME} ${command.name}: ${describeFailure(error)}`)
    return exitCodes.failed
  }
}

const isHelp = (word: string | undefined): boolean => word === '--help' || word === '-h'

const wordsOf = (name: string) => name.split(' ')

const findName = (words: readonly string[]): string | null =>
  commandNames.find((name) => wordsOf(name).every((word, index) => words[index] === word)) ?? null

/** Returns the commands of several words that begin with this one. */
const groupOf = (first: string): string[] => commandNames.filter((name) => name.startsWith(`${first} `))

function unknownCommand(words: readonly string[]): string {
  const [first = '', second = ''] = words
  const group = groupOf(first)
  if (group.length > 0)
    return `"${first}" needs one of: ${group.map((name) => name.slice(first.length + 1)).join(', ')}`
  const meant = nearest(first, commandNames) ?? nearest(`${first} ${second}`, commandNames)
  return `there is no command "${first}"${meant === null ? '' : `; did you mean "${meant}"?`}`
}

type ParsedArguments = { ok: true; given: Omit<Invocation, 'terminal'> } | { ok: false; fault: string }

function parse({ options = {}, parameters = [] }: Command, args: string[]): ParsedArguments {
  const types = Object.entries(options).map(
    ([name, { value }]) => [name, { type: value === undefined ? 'boolean' : 'string' }] as const,
  )
  try {
    const { positionals, values } = parseArgs({
      args: withDashedValues(args, options),
      allowPositionals: true,
      options: Object.fromEntries(types),
    })
    const extra = positionals[parameters.length]
    if (extra !== undefined) return { ok: false, fault: `unexpected argument "${extra}"` }
    const missing = parameters[positionals.length]
    if (missing?.startsWith('<')) return { ok: false, fault: `${missing} is missing` }
    const given = Object.entries(values)
    return {
      ok: true,
      given: {
        positionals,
        options: Object.fromEntries(
          given.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
        ),
        flags: new Set(given.flatMap(([name, value]) => (value === true ? [name] : []))),
      },
    }
  } catch (error) {
    // Keep the first sentence of the message. The others explain a syntax that no command here needs.
    return { ok: false, fault: describeFailure(error).split('. ', 1)[0] ?? '' }
  }
}

/**
 * Join an option and its value if the value begins with a dash, as one in 64 mailed codes does: the parser refuses it
 * as a word of its own.
 */
function withDashedValues(args: readonly string[], options: NonNullable<Command['options']>): string[] {
  const joined: string[] = []
  for (const arg of args) {
    const last = joined.at(-1) ?? ''
    const takesValue = last.startsWith('--') && options[last.slice(2)]?.value !== undefined
    if (takesValue && /^-[^-]/.test(arg)) joined[joined.length - 1] = `${last}=${arg}`
    else joined.push(arg)
  }
  return joined
}

async function help(terminal: Terminal, words: readonly string[]): Promise<ExitCode> {
  if (words.length === 0) return answer(terminal, await overview())
  const name = findName(words)
  if (name !== null) return answer(terminal, helpOf(await loadCommand(name)))
  const group = words.length === 1 ? groupOf(words[0]!) : []
  return group.length === 0
    ? misuse(terminal, unknownCommand(words), await overview())
    : answer(terminal, await overview(group))
}

async function overview(listed: readonly string[] = commandNames): Promise<string> {
  const shown = await loadCommands(listed)
  const width = Math.max(...listed.map((name) => name.length))
  return `${SOFTWARE}, a Personal Data Server for the AT Protocol

Usage: ${SOFTWARE_NAME} <command>

${shown.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n')}

Run "${SOFTWARE_NAME} <command> --help" for more about one.`
}

function helpOf({ name, summary, details, parameters = [], options = {} }: NamedCommand): string {
  const flags = Object.entries(options).map(
    ([option, { value, doc }]) => [`--${option}${value === undefined ? '' : ` ${value}`}`, doc] as const,
  )
  const usage = [SOFTWARE_NAME, name, ...flags.map(([flag]) => `[${flag}]`), ...parameters].join(' ')
  const width = Math.max(0, ...flags.map(([flag]) => flag.length))
  const list =
    flags.length === 0 ? '' : `\n\n${flags.map(([flag, doc]) => `  ${flag.padEnd(width)}  ${doc}`).join('\n')}`
  return `${summary}\n\nUsage: ${usage}${list}\n\n${details}`
}

function answer(terminal: Terminal, text: string): ExitCode {
  terminal.out(text)
  return exitCodes.ok
}

function misuse(terminal: Terminal, fault: string, advice: string): ExitCode {
  terminal.err(`${SOFTWARE_NAME}: ${fault}\n\n${advice}`)
  return exitCodes.misused
}
