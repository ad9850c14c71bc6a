import { OperatorError } from '../../base/operator-error.ts'
import { adminCommand, type Answer } from '../admin-command.ts'
import { chosenFlag, Misuse } from '../command.ts'
import { linesToSet } from '../lines-to-set.ts'
import { pages } from '../operator-pages.ts'
import { facts, minute, table } from '../report.ts'
import type { Server } from '../operator-server.ts'

interface Plan {
  url: string
  formerUrls: string[]
  isConfigured: boolean
  isReached: { ok: boolean; detail: string }
  identities: { plc: number; wallet: number; web: number }
  handles: { underFormerName: number; offered: boolean; domains: string[]; conflicts: string[] }
}

interface Status {
  url: string
  handles: string
  begunAt: string
  finishedAt: string | null
  accounts: number
  states: Partial<Record<'sending' | 'updated' | 'by_holder' | 'elsewhere' | 'refused' | 'failed', number>>
  handleFaults: number
}

interface OpenAccount {
  did: string
  handle: string | null
  state: string
  detail: string | null
  handleFault: string | null
}

const PATH = '/v1/admin/host-rename'

export const renameHostCommand = adminCommand({
  summary: 'Give the server another name, and update all identities to its new address.',
  parameters: ['<host>'],
  details: `Point the new name at this server first, in DNS, and in front of it if there is a proxy. The first run prints what to
set in the configuration. After a restart with it, run it again: the server changes every identity whose key it holds, a
few at a time, tells all other holders by mail what to sign, and continues after a restart or an outage of the
directory. Meanwhile it answers under both names. Each further run prints the progress, and resumes with what is left to
do. To go back, set the former name again, and run the command with it.

It refuses to begin if requests to the new name do not arrive here, unless --unreached says that they do from elsewhere.
--check prints the plan with numbers, and changes nothing. --open lists the accounts that are not finished, and why.
--handles decides what happens to handles under the former name: keep (the default), as long as available_user_domains
has that name, or rename.`,
  options: {
    check: { doc: 'Print the plan, and change nothing.' },
    open: { doc: 'List the accounts that are not finished, and why.' },
    unreached: { doc: 'Begin even if, as far as this machine can tell, requests to the new name do not arrive here.' },
    handles: { value: 'keep|rename', doc: 'What happens to handles under the former name. Default: keep.' },
  },
  async run({ server, positionals: [name = ''], options, flags }) {
    const url = name.includes('://') ? name.replace(/\/$/, '') : `https://${name}`
    const { handles = 'keep' } = options
    if (handles !== 'keep' && handles !== 'rename') throw new Misuse('--handles takes keep or rename')
    const way = chosenFlag(flags, ['check', 'open'])
    if (way === 'open') return openAccounts(server)
    const plan = await server.get<Plan>(`${PATH}/plan`, { url })
    if (way === 'check' || !plan.isConfigured) {
      const text = plan.isConfigured ? planText(plan) : `${planText(plan)}\n\n${await changesText(server, plan)}`
      return { value: plan, text, failed: way !== 'check' || !plan.isReached.ok }
    }
    if (!plan.isReached.ok && !flags.has('unreached') && !(await hasBegun(server, url)))
      throw new OperatorError(
        `${url} does not lead to this server (${plan.isReached.detail}), and every identity would name it: correct DNS or the proxy, or add --unreached if this machine cannot reach its own public address`,
      )
    const { rename } = await server.post<{ rename: Status }>(PATH, { url, handles })
    return { value: rename, text: statusText(rename) }
  },
})

async function hasBegun(server: Server, url: string): Promise<boolean> {
  const { rename } = await server.get<{ rename: Status | null }>(PATH)
  return rename?.url === url
}

const answer = (yes: boolean): string => (yes ? 'yes' : 'no')

function planText({ url, formerUrls, isConfigured, isReached, identities, handles }: Plan): string {
  const { hostname } = new URL(url)
  const { plc, wallet, web } = identities
  return facts({
    'new address': url,
    'former address': formerUrls.join(', '),
    'reaches this server': `${answer(isReached.ok)}: ${isReached.detail}`,
    'in the configuration': answer(isConfigured),
    'did:plc': `${plc} accounts, which the server changes, except those whose wallet ranks higher (${wallet} have one)`,
    'did:web': `${web} accounts, of which the server changes the documents that it serves`,
    'handles under the former name': handles.underFormerName,
    'handles under the new name': handles.offered
      ? 'offered'
      : `not offered: add ${hostname} to available_user_domains`,
    'handles that are taken there': handles.conflicts.length === 0 ? 'none' : handles.conflicts.join(', '),
  })
}

interface Origin {
  name: string
  from: string
  /** Null if no variable sets it. */
  variable: string | null
}

/** What to set so that the server has both names. */
async function changesText(server: Server, { url, formerUrls, handles }: Plan): Promise<string> {
  const { keys } = await server.get<{ keys: Origin[] }>('/v1/admin/configuration')
  const originOf = (wanted: string) => keys.find(({ name }) => name === wanted)
  const address = originOf('public_url')
  // What "config set" has set counts instead of the configuration.
  const areSetHere = originOf('available_user_domains')?.from !== 'run time'
  const domains = [new URL(url).hostname, ...handles.domains]
  const lines = linesToSet(
    {
      public_url: url,
      former_urls: formerUrls,
      ...(!handles.offered && areSetHere && { available_user_domains: domains }),
    },
    address?.from === 'file' && address.variable === null,
  )
  return `Set this, restart the server, and call the command again:

${lines.join('\n')}

Apps have to sign in again once the identity of their account names the new address.`
}

function statusText({ url, handles, begunAt, finishedAt, accounts, states, handleFaults }: Status): string {
  const settled =
    Object.values(states).reduce((sum, count) => sum + count, 0) - (states.sending ?? 0) - (states.failed ?? 0)
  return facts({
    'new address': url,
    begun: minute(begunAt) ?? '',
    finished: minute(finishedAt) ?? `no: ${settled} of ${accounts} accounts so far`,
    'identities that name it': states.updated ?? 0,
    'that only their holders can change': states.by_holder ?? 0,
    'that name another server': states.elsewhere ?? 0,
    'that the directory refused to change': states.refused ?? 0,
    'that failed, and are tried again': states.failed ?? 0,
    ...(handles === 'rename' && { 'accounts that kept a former handle': handleFaults }),
  })
}

const leftToDo: Readonly<Record<string, string>> = {
  by_holder: 'its holder has to change the identity',
  failed: 'failed: the server tries again',
}

async function openAccounts(server: Server): Promise<Answer> {
  const accounts = await pages<OpenAccount>(server, `${PATH}/open`, 'accounts')
  const rows = accounts.map(({ did, handle, state, detail, handleFault }) => [
    handle ?? '',
    did,
    leftToDo[state] ?? state,
    [detail, handleFault].filter((part) => part !== null).join('; '),
  ])
  return { value: accounts, text: table(['HANDLE', 'DID', 'LEFT TO DO', 'DETAIL'], rows) }
}
