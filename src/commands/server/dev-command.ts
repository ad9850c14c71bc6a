import type { App } from '../../app.ts'
import type { Config } from '../../platform/configuration/config.ts'
import type { Command } from '../command.ts'
import { runServer } from './run-server.ts'

export const devCommand: Command = {
  summary: 'Run a development server, which needs no configuration.',
  details: `Listens on loopback, port 2583; stores its data in ./data; offers handles under .test without invite codes; writes
mail to the log; and runs its own PLC directory, so it needs no network.

Every configuration key still works, for example PORT=3000.`,
  run: ({ terminal }) =>
    runServer(terminal, 'dev', {
      makesToken: true,
      onListening: (app, config) => terminal.out(introduction(app, config, terminal.self)),
    }),
}

function introduction({ url }: App, { availableUserDomains, publicUrl }: Config, self: string): string {
  const handle = `alice.${availableUserDomains[0]}`
  const json = "-H 'content-type: application/json'"
  const account = JSON.stringify({ handle, email: 'alice@example.com', password: 'alice-password' })
  const login = JSON.stringify({ identifier: handle, password: 'alice-password' })
  const post = JSON.stringify({
    repo: handle,
    collection: 'app.bsky.feed.post',
    record: { $type: 'app.bsky.feed.post', text: 'Hello!', createdAt: new Date().toISOString() },
  })
  return `
Holdfast is listening on ${url}

Open ${publicUrl} in a browser to sign up and to manage your account.

Create an account from the command line:
  curl ${url}/xrpc/com.atproto.server.createAccount ${json} -d '${account}'

Post:
  TOKEN=$(curl -s ${url}/xrpc/com.atproto.server.createSession ${json} -d '${login}' | sed 's/.*"accessJwt":"\\([^"]*\\)".*/\\1/')
  curl ${url}/xrpc/com.atproto.repo.createRecord -H "authorization: Bearer $TOKEN" ${json} -d '${post}'

Read the firehose from the beginning:
  ${self} firehose ${url} --cursor 0

List the accounts, as the operator:
  ${self} account list --dev
`
}
