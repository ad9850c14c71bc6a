import { adminCommand } from '../admin-command.ts'
import { chosenFlag, integerOption } from '../command.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'

interface FailedRequest {
  id: string
  at: string
  method: string
  route: string
  status: number
  error: string
}

const DEFAULT_REQUESTS = 50

export const requestsCommand = adminCommand({
  summary: 'List failed and refused requests, newest first, or find one by its id.',
  parameters: ['[id]'],
  details: `Users find the id on the error page or in the header X-Request-Id; its first four characters suffice. If the server
failed, its log lines have the same id. The last console.kept_failures of each kind are kept, without bodies and
parameters. Exits with 1 if no request has the id.`,
  options: {
    failed: { doc: 'Only requests that failed on the server (status 500 and above).' },
    refused: { doc: 'Only refused requests.' },
    limit: { value: 'n', doc: `Print at most this many. Default: ${DEFAULT_REQUESTS}.` },
  },
  async run({ server, options, flags, positionals: [id] }) {
    const requests = await pages<FailedRequest>(
      server,
      '/v1/admin/requests',
      'requests',
      { id, kind: chosenFlag(flags, ['failed', 'refused']) },
      integerOption(options, 'limit', 1) ?? DEFAULT_REQUESTS,
    )
    const rows = requests.map((request) => [
      minute(request.at)!,
      String(request.status),
      request.error,
      `${request.method} ${request.route}`,
      request.id,
    ])
    const isMissing = id !== undefined && requests.length === 0
    const text = isMissing
      ? `No request with the id ${id} is kept.`
      : table(['TIME', 'STATUS', 'ERROR', 'REQUEST', 'ID'], rows)
    return { value: requests, text, failed: isMissing }
  },
})
