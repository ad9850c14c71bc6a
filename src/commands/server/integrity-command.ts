import { adminCommand } from '../admin-command.ts'
import { minute } from '../report.ts'

interface IntegrityView {
  round: {
    beganAt: string
    endedAt: string | null
    repos: number
    completedAt: string | null
    completedRepos: number | null
  } | null
  count: number
  damaged: { did: string; handle: string | null; faults: string[]; since: string }[]
}

export const integrityCommand = adminCommand({
  summary: 'Show what the running check of all repositories has found.',
  details: `The server reads every repository in turn while it works (integrity.round_secs), recently written ones first, and
compares records, tree, signature and event log. It repairs nothing. "holdfast sweep integrity" runs the next pass now;
"holdfast verify" checks everything at once, with the server stopped. Exits with 1 if a repository is damaged.`,
  async run({ server }) {
    const view = await server.get<IntegrityView>('/v1/admin/integrity')
    const { round, count, damaged } = view
    const progress = round === null ? ['No repository has been checked yet.'] : progressOf(round)
    const faults = damaged.flatMap(({ did, handle, faults, since }) => [
      `${handle ?? did} (${did}), since ${minute(since)}:`,
      ...faults.map((fault) => `  ${fault}`),
    ])
    const more = count > damaged.length ? [`and ${count - damaged.length} more repositories`] : []
    return { value: view, text: [...progress, ...faults, ...more].join('\n'), failed: count > 0 }
  },
})

function progressOf({ beganAt, endedAt, repos, completedAt, completedRepos }: NonNullable<IntegrityView['round']>) {
  const present = endedAt === null ? [`${repos} repositories were checked since ${minute(beganAt)}.`] : []
  return completedAt === null
    ? present
    : [...present, `The last whole round ended at ${minute(completedAt)}, with ${completedRepos} repositories.`]
}
