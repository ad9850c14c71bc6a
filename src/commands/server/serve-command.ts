import type { App } from '../../app.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { ownTokenPath } from '../../platform/secrets/own-admin-token.ts'
import type { Command, Terminal } from '../command.ts'
import { requireServiceDomain, variablesOf } from '../service-domain.ts'
import { runServer } from './run-server.ts'

const DEFAULT_FOLDER = './data'

export const serveCommand: Command = {
  summary: 'Run the server.',
  details: `Reads the configuration from the file that SERVICE_CONFIG names, or ./pds.toml, or ./holdfast.env, and from environment
variables, which take precedence.
Three keys have no default: SERVICE_PUBLIC_URL, SERVICE_AVAILABLE_USER_DOMAINS and SERVICE_DATA_DIR.

--domain sets the first two for https://DOMAIN and handles under it, and the third to ./data unless it is set. If no
admin token is configured, the server creates one and keeps it in holdfast.admin-token in the data folder; its master
key is in master.key there. With SERVICE_TLS_MODE=acme it also gets its certificates. "holdfast init" writes a
configuration instead.

On SIGTERM, SIGINT or SIGHUP (a closed terminal, unless it was started with nohup), the server finishes the requests in
progress and exits with 0; while it is starting, it exits within a few seconds. A second SIGTERM or SIGINT makes it exit
at once with 130.`,
  options: { domain: { value: 'DOMAIN', doc: 'Serve this domain, without any other configuration.' } },
  run: ({ terminal, options: { domain } }) =>
    domain !== undefined
      ? runServer(ofDomain(terminal, domain), 'serve', {
          makesToken: true,
          onListening: (app, config) => introduce(terminal, app, config),
        })
      : runServer(terminal, 'serve', { makesToken: false, onListening: () => {} }),
}

function ofDomain(terminal: Terminal, given: string): Terminal {
  const { env } = terminal
  const { SERVICE_PUBLIC_URL, ...rest } = variablesOf(
    requireServiceDomain(given, { allowsTest: env['SERVICE_DEVELOPMENT'] === 'true' }),
  )
  return {
    ...terminal,
    env: { ...env, SERVICE_PUBLIC_URL },
    fallbacks: { ...rest, SERVICE_DATA_DIR: DEFAULT_FOLDER },
  }
}

/** Tell how to use the server, on standard error: the log has standard output. */
function introduce(
  terminal: Terminal,
  { url }: App,
  { publicUrl, adminToken, dataDir, inviteCodeRequired }: Config,
): void {
  const credential = adminToken === null ? ` --token-file ${ownTokenPath(dataDir)}` : ''
  const invite = inviteCodeRequired ? `, with a code of: ${terminal.self} invite create --url ${url}${credential}` : ''
  terminal.err(`People sign up at ${publicUrl}/account/sign-up${invite}`)
}
