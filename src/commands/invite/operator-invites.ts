import type { LexDefs } from '../../protocol/lexicons/generated/types.ts'
import { pages } from '../operator-pages.ts'
import type { Server } from '../operator-server.ts'

export type Invite = LexDefs['com.atproto.server.defs#inviteCode']

/** Returns all invite codes, newest first. */
export const allInvites = (server: Server): Promise<Invite[]> =>
  pages(server, '/xrpc/com.atproto.admin.getInviteCodes', 'codes', { sort: 'recent' })
