/** Questions to the person at the terminal, and what answers them where there is none. */
import { randomBytes } from 'node:crypto'
import { OperatorError } from '../base/operator-error.ts'
import { base32 } from '../protocol/cid.ts'
import { chosenFlag, type Invocation, Misuse, type Option, type Terminal } from './command.ts'

export const yesOption = { yes: { doc: 'Do not ask for confirmation.' } } as const satisfies Record<string, Option>

/** Throws OperatorError unless `--yes` is given or the person types `proof`. The question says what to type. */
export async function confirm({ terminal, flags }: Invocation, question: string, proof = 'yes'): Promise<void> {
  if (flags.has('yes')) return
  if (!terminal.isInteractive) throw new Misuse('there is no terminal to confirm at: add --yes')
  if ((await terminal.ask(question)).trim().toLowerCase() !== proof.toLowerCase())
    throw new OperatorError('not confirmed; nothing was done')
}

/** Returns the value of an option, or the answer to a question. Throws `Misuse` if there is neither. */
export async function wanted({ terminal, options }: Invocation, option: string, question: string): Promise<string> {
  const given = options[option]
  if (given !== undefined) return given.trim()
  if (!terminal.isInteractive) throw new Misuse(`there is no terminal to prompt at: add --${option}`)
  return (await terminal.ask(`${question}: `)).trim()
}

/** Returns what is left of standard input. */
export async function restOfInput({ nextLine }: Terminal): Promise<string> {
  const lines: string[] = []
  for (let line = await nextLine(); line !== null; line = await nextLine()) lines.push(line)
  return lines.join('\n')
}

export const passwordOption = {
  'password-stdin': { doc: 'Read the password from standard input.' },
} as const satisfies Record<string, Option>

/** Returns a password: the next line of standard input with `--password-stdin`, otherwise the answer to a question. */
export async function secret({ terminal, flags }: Invocation, question: string): Promise<string> {
  if (flags.has('password-stdin')) {
    const line = await terminal.nextLine()
    if (line === null || line === '') throw new Misuse(`standard input has no line for: ${question}`)
    return line
  }
  if (!terminal.isInteractive) throw new Misuse('there is no terminal to prompt at: add --password-stdin')
  return terminal.ask(`${question}: `, { hidden: true })
}

/** Ask for a new secret twice. `what` names it, in the plural. Throws `Misuse` if the two entries differ. */
export async function askTwice(terminal: Terminal, question: string, what: string): Promise<string> {
  const entered = await terminal.ask(`${question}: `, { hidden: true })
  if (entered !== (await terminal.ask('Once more: ', { hidden: true }))) throw new Misuse(`the two ${what} differ`)
  return entered
}

export const newPasswordOptions = {
  generate: { doc: 'Generate a password, and print it once.' },
  'password-stdin': { doc: 'Read the password from the next line of standard input.' },
} as const satisfies Record<string, Option>

export const HOW_PASSWORDS_COME = 'Asks for the password twice, unless --generate or --password-stdin is given.'

/**
 * Generate a password, read one from standard input, or ask for one twice, as the options say.
 *
 * `generated` is the password to show to the operator, or null if the operator supplied it. Throws `Misuse` if the
 * options conflict, if no password arrives, if the two entries differ, or if there is no terminal to ask at.
 */
export async function newPassword({
  terminal,
  flags,
}: Invocation): Promise<{ password: string; generated: string | null }> {
  const way = chosenFlag(flags, ['generate', 'password-stdin'])
  if (way === 'generate') {
    const password = generatedPassword()
    return { password, generated: password }
  }
  if (way === 'password-stdin') {
    const password = await terminal.nextLine()
    if (!password) throw new Misuse('there is no password on standard input')
    return { password, generated: null }
  }
  if (!terminal.isInteractive)
    throw new Misuse('there is no terminal to prompt for the password: add --generate or --password-stdin')
  return { password: await askTwice(terminal, 'Password', 'passwords'), generated: null }
}

/** Returns a new password if `--password` or `--password-stdin` is given, otherwise null. */
export const newPasswordIfWanted = async (invocation: Invocation): Promise<string | null> =>
  invocation.flags.has('password') || invocation.flags.has('password-stdin')
    ? (await newPassword(invocation)).password
    : null

/** 100 random bits in base32, in groups of five characters that are easy to read out. */
const generatedPassword = () =>
  base32(randomBytes(13))
    .slice(0, 20)
    .replace(/.{5}(?=.)/g, '$&-')
