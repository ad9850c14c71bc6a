import { adminCommand } from '../admin-command.ts'
import { minute, table } from '../report.ts'

interface IdentitiesView {
  round: { beganAt: string; endedAt: string | null; accounts: number } | null
  changed: { did: string; handle: string | null; at: string; parts: string[]; undoableUntil: string }[]
  misfits: { did: string; handle: string | null; misfit: string }[]
}

export const accountIdentitiesCommand = adminCommand({
  summary: 'List identities that others have changed, and those that do not match their accounts.',
  details: `The server compares the identity of each account with the PLC directory (identity_watch.interval_secs). Lists
changes of the last 72 hours that did not come from this server: a higher key can undo them until the time shown. The
holders have been mailed. Exits with 1 if identities do not match their accounts.`,
  async run({ server }) {
    const view = await server.get<IdentitiesView>('/v1/admin/identities')
    const { round, changed, misfits } = view
    const looked =
      round === null
        ? 'No identity has been compared yet.'
        : `${round.accounts} identities were compared, from ${minute(round.beganAt)} to ${minute(round.endedAt) ?? 'now'}.`
    const changes = table(
      ['CHANGED', 'DID', 'WHEN', 'PARTS', 'CAN BE UNDONE UNTIL'],
      changed.map(({ did, handle, at, parts, undoableUntil }) => [
        handle ?? '',
        did,
        minute(at)!,
        parts.join(', '),
        minute(undoableUntil)!,
      ]),
    )
    const unfit = table(
      ['DOES NOT FIT', 'DID', 'PART'],
      misfits.map(({ did, handle, misfit }) => [handle ?? '', did, misfit]),
    )
    return {
      value: view,
      text: [looked, ...(changed.length === 0 ? [] : [changes]), ...(misfits.length === 0 ? [] : [unfit])].join('\n\n'),
      failed: misfits.length > 0,
    }
  },
})
