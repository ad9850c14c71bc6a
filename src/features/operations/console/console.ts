/**
 * The operators' console: pages at `/admin` for accounts with a role. They show what endpoints under `/v1/admin`
 * return, and act by calling them, so whatever a page does, a program can do, and the same guards decide. The pages are
 * loaded when one is asked for.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import type { Feature } from '../../../http/feature.ts'
import type { PageCall } from '../../access/page-parts/page-parts.ts'

type Pages = typeof import('./console-pages.ts')

const load = (): Promise<Pages> => import('./console-pages.ts')

const shown = (path: string, name: keyof Pages['shownPages']): Endpoint =>
  route('GET', path, { handler: async (call) => (await load()).show(call, name) })

const sent = (path: string, send: (pages: Pages) => (call: PageCall) => Promise<Response>): Endpoint =>
  route('POST', path, { handler: async (call) => send(await load())(call) })

export const operatorConsole: Feature = {
  name: 'console',
  enabled: ({ config }) => config.console.enabled,
  routes: [
    shown('/admin', 'overview'),
    shown('/admin/accounts', 'accounts'),
    shown('/admin/account', 'account'),
    shown('/admin/cases', 'cases'),
    shown('/admin/case', 'case'),
    shown('/admin/case/export', 'caseExport'),
    shown('/admin/sign-ups', 'signUps'),
    shown('/admin/data', 'data'),
    route('GET', '/admin/data/blob', { handler: async (call) => (await load()).showBlob(call) }),
    shown('/admin/invites', 'invites'),
    shown('/admin/waitlist', 'waitlist'),
    shown('/admin/audit', 'audit'),
    shown('/admin/operators', 'operators'),
    shown('/admin/configuration', 'configuration'),
    shown('/admin/requests', 'requests'),
    shown('/admin/agents', 'agents'),
    shown('/admin/pushes', 'pushes'),
    shown('/admin/network', 'network'),
    shown('/admin/work', 'work'),
    route('GET', '/admin/sign-in', { handler: async (call) => (await load()).showSignIn(call) }),
    sent('/admin/sign-in', ({ sendSignIn }) => sendSignIn),
    sent('/admin/sign-out', ({ sendSignOut }) => sendSignOut),
    sent('/admin/act', ({ sendAct }) => sendAct),
  ],
}
