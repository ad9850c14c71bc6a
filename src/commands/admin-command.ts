/** Commands that control a running server: the one that the configuration describes, or the one that `--url` names. */
import { OperatorError } from '../base/operator-error.ts'
import { isConfidential } from '../base/server-request.ts'
import { type Command, exitCodes, type ExitCode, type Invocation, Misuse, type Terminal } from './command.ts'
import { adminTokenFor, configurationOf, devOption } from './configuration.ts'
import { Server, serverOf } from './operator-server.ts'
import { jsonOption, tellResult } from './report.ts'

const TOKEN = 'SERVICE_ADMIN_TOKEN'

/** The result of a command: `text` is printed for people, `value` is printed as JSON with `--json`. */
export interface Answer {
  value: unknown
  text: string
  /** Exit with status 1 although the result is printed. */
  failed?: boolean
}

export interface OperatorCommand extends Omit<Command, 'run'> {
  /** The command sends no token, and needs none. */
  isOpen?: boolean
  run(invocation: Invocation & { server: Server }): Promise<Answer>
}

/** Add the options that select the server and the output format to a command. */
export function adminCommand({ details, options, run, isOpen = false, ...command }: OperatorCommand): Command {
  return {
    ...command,
    details: `${details}${details === '' ? '' : '\n\n'}Calls the running server that the configuration names, or the server at --url, with the admin token or the token
of a session (see "operator sign-in"). With --url, the token comes from ${TOKEN} or --token-file. It is never
an argument, because other users of the machine can see arguments.`,
    options: {
      ...options,
      reason: { value: 'TEXT', doc: 'Why, for the audit log.' },
      ...jsonOption,
      url: { value: 'URL', doc: 'Call this server.' },
      'token-file': {
        value: 'FILE',
        doc: 'Read the admin token from this file; "-" is the first line of standard input.',
      },
      ...devOption,
    },
    async run(invocation): Promise<ExitCode> {
      const server = await serverFor(invocation, isOpen)
      if (server === null) return exitCodes.failed
      const { value, text, failed = false } = await run({ ...invocation, server })
      tellResult(invocation, value, text)
      return failed ? exitCodes.failed : exitCodes.ok
    },
  }
}

async function serverFor(invocation: Invocation, isOpen: boolean): Promise<Server | null> {
  const { terminal, options } = invocation
  const given = isOpen ? null : await tokenFrom(options['token-file'], terminal)
  const { url } = options
  const reason = options['reason'] ?? null
  if (url !== undefined) {
    const token = given ?? terminal.env[TOKEN]?.trim()
    if (!token && !isOpen)
      throw new OperatorError(`the admin token of ${url} is required, in ${TOKEN} or with --token-file`)
    return new Server(adminOrigin(url), token ?? null, reason)
  }
  // Warnings concern the running server, which logged them when it started.
  const config = configurationOf(invocation, () => {})
  return config && serverOf(config, given ?? adminTokenFor(invocation, config)?.reveal() ?? null, reason)
}

async function tokenFrom(file: string | undefined, terminal: Terminal): Promise<string | null> {
  if (file === undefined) return null
  const text = file === '-' ? await terminal.nextLine() : terminal.readFile(file)
  if (text === null || text.trim() === '')
    throw new OperatorError(file === '-' ? 'there is no admin token on standard input' : `${file} holds no admin token`)
  return text.trim()
}

/**
 * Returns the origin of a server URL. Throws `Misuse` if the token would cross a network unencrypted: only a loopback
 * address may use http.
 */
function adminOrigin(text: string): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Misuse(`${text} is not the URL of a server`)
  if (!isConfidential(url)) throw new Misuse(`the admin token would be sent to ${url.origin} unencrypted: use https`)
  return url.origin
}
