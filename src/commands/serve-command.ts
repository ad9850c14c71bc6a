import type { Command } from './command.ts'
import { runServer } from './run-server.ts'

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Run the server.',
  details: `Configuration comes from the file named by SERVICE_CONFIG, or ./pds.toml, and from the environment, which wins.
Three keys have no default: SERVICE_PUBLIC_URL, SERVICE_AVAILABLE_USER_DOMAINS and SERVICE_DATA_DIR.

SIGTERM or SIGINT lets running requests finish and then exits with 0; a second signal exits at once with 130.`,
  run: ({ terminal }) => runServer(terminal, 'serve', () => {}),
}
