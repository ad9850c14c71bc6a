import { adminCommand } from '../admin-command.ts'
import { table } from '../report.ts'

interface Asked {
  requested: number
  accepted: number
  relays: { host: string; accepted: boolean; detail: string }[]
}

export const relayRequestCrawlCommand = adminCommand({
  summary: 'Ask the relays to crawl this server.',
  details: 'Calls every relay in crawlers.urls. Exits with 1 if one of them does not accept the request.',
  async run({ server }) {
    const asked = await server.post<Asked>('/v1/admin/request-crawl')
    const rows = asked.relays.map(({ host, accepted, detail }) => [host, accepted ? 'accepted' : 'refused', detail])
    return { value: asked, text: table(['RELAY', 'ANSWER', 'DETAIL'], rows), failed: asked.accepted < asked.requested }
  },
})
