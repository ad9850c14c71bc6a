import { listCommand } from '../operator-pages.ts'
import { age } from '../report.ts'

interface CeremonyView {
  accountId: string
  handle: string
  tier: string
  did: string | null
  state: string
  createdAt: string
  ageSecs: number
  hasCode: boolean
  hasSession: boolean
}

const yes = (flag: boolean) => (flag ? 'yes' : 'no')

export const accountCeremoniesCommand = listCommand<CeremonyView>({
  summary: 'List account creations in progress.',
  details: `Lists accounts whose identities wallets create, newest first. STATE is created, key_issued, did_stored or registered.
CODE says whether the claim code is still unused, SESSION whether the wallet can continue without the code. An abandoned
creation is deleted after a week, or after a month if its identity is already in the directory.`,
  path: '/v1/admin/ceremonies',
  member: 'ceremonies',
  columns: {
    HANDLE: ({ handle }) => handle,
    STATE: ({ state }) => state,
    AGE: ({ ageSecs }) => age(ageSecs),
    CODE: ({ hasCode }) => yes(hasCode),
    SESSION: ({ hasSession }) => yes(hasSession),
    IDENTITY: ({ did }) => did ?? '-',
  },
})
