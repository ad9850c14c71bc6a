import { operated } from '../operated.ts'
import { pages } from '../operator-pages.ts'
import { age, table } from '../report.ts'

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

export const accountCeremoniesCommand = operated({
  name: 'account ceremonies',
  summary: 'List account creations in progress.',
  details: `Lists accounts whose identities wallets create, newest first. STATE is created, key_issued, did_stored or registered.
CODE says whether the claim code is still unused, SESSION whether the wallet can continue without the code. An abandoned
creation is deleted after a week, or after a month if its identity is already in the directory.`,
  async run({ server }) {
    const ceremonies = await pages<CeremonyView>(
      server,
      '/v1/admin/ceremonies',
      'ceremonies',
      {},
      { limit: undefined, pageSize: 100 },
    )
    const rows = ceremonies.map(({ handle, state, ageSecs, hasCode, hasSession, did }) => [
      handle,
      state,
      age(ageSecs),
      yes(hasCode),
      yes(hasSession),
      did ?? '-',
    ])
    return { value: ceremonies, text: table(['HANDLE', 'STATE', 'AGE', 'CODE', 'SESSION', 'IDENTITY'], rows) }
  },
})
