import { adminCommand } from '../admin-command.ts'
import { chosenOption, integerOption } from '../command.ts'
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
  summary: 'Print requests that failed or were refused, newest first, or find one by its id.',
  parameters: ['[id]'],
  details: `The id is in the header X-Request-Id of the error, and on the page that shows it; its first characters suffice. The log
has lines with the same id if the server failed. The last console.kept_failures of each kind are kept, without what was
sent. Exits with 1 if there is none with that id.`,
  options: {
    failed: { doc: 'Only requests at which the server failed (status 500 and above).' },
    refused: { doc: 'Only refused requests.' },
    limit: { value: 'n', doc: `Print at most this many. Default: ${DEFAULT_REQUESTS}.` },
  },
  async run({ server, options, positionals: [id] }) {
    const requests = await pages<FailedRequest>(
      server,
      '/v1/admin/requests',
      'requests',
      { id, kind: chosenOption(options, ['failed', 'refused']) ?? undefined },
      { limit: integerOption(options, 'limit', 1) ?? DEFAULT_REQUESTS, pageSize: 100 },
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
