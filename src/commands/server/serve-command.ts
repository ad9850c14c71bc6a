import type { Command } from '../command.ts'
import { runServer } from './run-server.ts'

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Run the server.',
  details: `Reads the configuration from the file that SERVICE_CONFIG names, or ./pds.toml, and from environment variables, which
take precedence.
Three keys have no default: SERVICE_PUBLIC_URL, SERVICE_AVAILABLE_USER_DOMAINS and SERVICE_DATA_DIR.

On SIGTERM or SIGINT, the server finishes the requests in progress and exits with 0. A second signal makes it exit at
once with 130.`,
  run: ({ terminal }) => runServer(terminal, 'serve', () => {}),
}
