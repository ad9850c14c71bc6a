import { OperatorError } from '../../base/operator-error.ts'
import { adminCommand } from '../admin-command.ts'
import { Misuse } from '../command.ts'
import { confirm, yesOption } from '../prompts.ts'
import { table } from '../report.ts'
import { PATH, type SignUp, signUpsIn, windowOptions } from './operator-sign-ups.ts'

const acts: readonly string[] = ['takedown', 'restore', 'delete']
const ACCOUNTS_PER_REQUEST = 50

interface Undone {
  did: string
  outcome: string
  why?: string
}

export const accountUndoSignUpsCommand = adminCommand({
  summary: 'Take down, restore or delete all accounts that were created in a period.',
  parameters: ['<act>'],
  details: `The act is takedown, restore (lifts these takedowns) or delete. Prints the accounts, and asks you to confirm by typing
their number, unless --yes is given. Accounts with a role are kept, and accounts that moved here from another server are
never deleted.`,
  options: {
    ...windowOptions,
    except: { value: 'NAMES', doc: 'Keep these: handles or DIDs, separated by commas.' },
    'dry-run': { doc: 'Only print the accounts.' },
    ...yesOption,
  },
  async run(invocation) {
    const {
      server,
      positionals: [act = ''],
      options,
      flags,
    } = invocation
    if (!acts.includes(act)) throw new Misuse(`the act must be one of ${acts.join(', ')}`)
    const { from, until, accounts } = await signUpsIn(server, options)
    const kept = keptAccounts(accounts, String(options['except'] ?? ''))
    const meant = accounts.filter(({ did, role }) => role === null && !kept.has(did))
    const preview = table(
      ['HANDLE', 'STATUS', 'DID'],
      meant.map(({ handle, status, did, arrived }) => [handle ?? '', arrived ? `${status}, moved here` : status, did]),
    )
    if (flags.has('dry-run')) return { value: meant, text: `${preview}\n${meant.length} accounts.` }
    await confirm(invocation, `${preview}\n\n${act}: type ${meant.length} to continue: `, String(meant.length))
    const undone: Undone[] = []
    for (let start = 0; start < meant.length; start += ACCOUNTS_PER_REQUEST) {
      const dids = meant.slice(start, start + ACCOUNTS_PER_REQUEST).map(({ did }) => did)
      undone.push(...(await server.post<{ accounts: Undone[] }>(`${PATH}/undo`, { from, until, act, dids })).accounts)
    }
    const left = undone.filter(({ outcome }) => outcome !== 'done')
    const lines = left.map(({ did, why }) => `${did} was kept${why === undefined ? '' : `: ${why}`}`)
    return { value: undone, text: [`${act}: ${undone.length - left.length} accounts.`, ...lines].join('\n') }
  },
})

/**
 * Returns the DIDs of the accounts that a list names. Throws OperatorError for a name that belongs to none of them:
 * otherwise the account that was meant would not be kept.
 */
function keptAccounts(accounts: readonly Pick<SignUp, 'did' | 'handle'>[], list: string): ReadonlySet<string> {
  const names = list
    .split(',')
    .map((name) => name.trim().replace(/^@/, '').toLowerCase())
    .filter((name) => name !== '')
  return new Set(
    names.map((name) => {
      const found = accounts.find(({ did, handle }) => name === did.toLowerCase() || name === handle)
      if (found === undefined)
        throw new OperatorError(`--except: ${name} is not among these accounts; nothing was done`)
      return found.did
    }),
  )
}
