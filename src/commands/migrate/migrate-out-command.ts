import { resolve } from 'node:path'
import { exitCodes, integerOption, Misuse, type Command, type Invocation } from '../command.ts'
import { HolderServer, serverUrl, whileSignedIn } from '../holder-server.ts'
import { passwordOption } from '../prompts.ts'
import { facts, tellResult } from '../report.ts'
import { serverOption } from './migrate-client.ts'

/** The response of `GET /v1/move-out`. */
interface Leaving {
  did: string
  handle: string | null
  isHere: boolean | null
  host: string | null
  isActive: boolean
  deleteAfter: string | null
  hasOwnKey: boolean | null
}

export const migrateOutCommand: Command = {
  summary: 'Prepare an account to move away, and finish once it has moved.',
  parameters: ['<handle or DID>'],
  details: `The new server does the move: start there, with "holdfast migrate in" or its own page. This command signs in at the old
server, which --server names, and shows what the identity says. Before the move, --backup downloads an archive, and
--mail has the server mail the code that the new server needs. After the move, --leave deactivates the account that is
left behind; it is refused while the identity still names the old server. Exits with 1 while the account has not moved.`,
  options: {
    ...serverOption,
    server: { value: 'URL', doc: 'The old server.' },
    backup: { value: 'FILE', doc: 'Download everything that the server stores of the account, as an archive.' },
    mail: { doc: 'Have the server mail the code for the change of the identity.' },
    leave: { doc: 'Deactivate the account, which has moved.' },
    'delete-after-days': {
      value: 'DAYS',
      doc: 'With --leave: have the account deleted after this many days. Default: it is kept.',
    },
    ...passwordOption,
  },
  async run(invocation) {
    const { options, flags } = invocation
    const deleteAfterDays = integerOption(options, 'delete-after-days', 1)
    if (deleteAfterDays !== undefined && !flags.has('leave')) throw new Misuse('--delete-after-days needs --leave')
    const server = new HolderServer(await serverUrl(invocation))
    const leaving = await whileSignedIn(invocation, server, async () => {
      if (options['backup'] !== undefined) await downloadArchive(server, options['backup'])
      if (flags.has('mail')) await server.post('/xrpc/com.atproto.identity.requestPlcOperationSignature', null)
      if (flags.has('leave')) await server.post('/v1/move-out/leave', { deleteAfterDays })
      return server.get<Leaving>('/v1/move-out')
    })
    tell(invocation, leaving)
    return leaving.isHere === false ? exitCodes.ok : exitCodes.failed
  },
}

async function downloadArchive(server: HolderServer, file: string): Promise<void> {
  const { endsAsZip, requireNoFile, saveDownload } = await import('../downloads.ts')
  const path = resolve(file)
  requireNoFile(path)
  await saveDownload(server.download('/v1/account/archive'), path, endsAsZip())
}

function tell(invocation: Invocation, leaving: Leaving): void {
  const { did, handle, isHere, host, isActive, deleteAfter, hasOwnKey } = leaving
  tellResult(
    invocation,
    leaving,
    facts({
      account: handle === null ? did : `${handle} (${did})`,
      identity:
        isHere === null ? 'cannot be read at the moment' : `names ${isHere ? 'this server' : (host ?? 'no server')}`,
      'key of your own': hasOwnKey === null ? null : hasOwnKey ? 'yes' : 'no: add one with "holdfast migrate key"',
      'account here': isActive ? 'active' : 'deactivated',
      'deleted after': deleteAfter,
    }),
  )
}
