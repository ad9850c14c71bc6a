import { operated } from './operated.ts'
import { pages } from './operator-pages.ts'
import { age, table } from './report.ts'

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

export const ceremonyListCommand = operated({
  name: 'ceremony list',
  summary: 'List accounts in the making, whose identities wallets make.',
  details: `The newest first, with how far each is: created, key_issued, did_stored or registered. CODE says whether its code still
waits to be redeemed, SESSION whether its wallet can go on without showing the code again. One that nobody comes back to
ends after a week, and after a month once the directory has its identity.`,
  async run({ server }) {
    const ceremonies = await pages<CeremonyView>(server, '/v1/admin/ceremonies', 'ceremonies', {}, { limit: undefined, pageSize: 100 })
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
