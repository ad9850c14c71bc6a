/** What `writing-routes.ts` does not prepare, and what the refusal of a server that can store nothing looks like. */
import { features } from '../../../src/features.ts'
import { endpointName, type Endpoint } from '../../../src/http/endpoint.ts'
import type { Answer } from '../../support/clients/http.ts'

/** Endpoints that are no queries, and store nothing that the caller would miss. */
export const storingNothing: Record<string, string> = {
  'POST /language': 'sets a cookie',
  'com.atproto.identity.refreshIdentity': 'only a cache is written',
  'com.atproto.moderation.createReport': 'is forwarded',
  'app.bsky.notification.registerPush': 'is forwarded',
  'app.bsky.notification.unregisterPush': 'is forwarded',
  'PUT /oauth/par': 'is not allowed',
  'DELETE /oauth/par': 'is not allowed',
  'POST /v1/agents/claim-preview': 'reads',
  'POST /v1/decisions/view': 'reads',
  'POST /v1/admin/accounts/lookup': 'reads',
  'POST /v1/admin/steps/retry': 'nothing waits here',
  'POST /v1/admin/steps/drop': 'nothing waits here',
  'POST /v1/admin/request-crawl': 'asks others',
  'POST /v1/admin/probe': 'asks others',
  'POST /v1/admin/sweeps/:name/run': 'a pass survives what fails, and reports it',
  'POST /v1/admin/notifications/test': 'asks the relay',
  'POST /v1/admin/notifications/sender-keys/:kid/retire': 'the rotation has retired it',
  'POST /account/archive/import/begin': 'a sign-in that is new is proof enough',
  'POST /account/archive': 'is a download',
  'POST /account/archive/kept': 'is a download',
  'POST /:did': 'the directory of a development server, which is another one here',
}

/** By the beginning of the path, what a refusal looks like. The first that matches decides. */
const formats: readonly [path: string, format: (answer: Answer) => unknown][] = [
  ['/oauth/authorize/approve', ({ body }) => body.error.code === 'SERVICE_UNAVAILABLE' && body.error.message],
  ['/oauth/authorize', ({ body }) => isPage(body) && body],
  ['/oauth/', ({ body }) => body.error === 'temporarily_unavailable' && body.error_description],
  ['/agent/claim', ({ body }) => isPage(body) && body],
  ['/agent/child', ({ body }) => body.error.code === 'SERVICE_UNAVAILABLE' && body.error.message],
  ['/agent/identity', ({ body }) => body.error === 'temporarily_unavailable' && body.error_description],
  ['/agent/event', ({ body }) => body.err === 'temporarily_unavailable' && body.description],
  ['/account', ({ body }) => isPage(body) && body],
  ['/admin', ({ body }) => isPage(body) && body],
  ['/waitlist', ({ body }) => body.error.code === 'SERVICE_UNAVAILABLE' && body.error.message],
  ['/v1/', ({ body }) => body.error.code === 'SERVICE_UNAVAILABLE' && body.error.message],
  ['', ({ body }) => body.error === 'ServiceUnavailable' && body.message],
]
const isPage = (body: unknown) => typeof body === 'string' && body.startsWith('<!doctype html>')

/** `POST /oauth/token (refresh)` is a request to `POST /oauth/token`. */
export const endpointOf = (name: string) => name.replace(/ \(.*\)$/, '')
const pathOf = (name: string) => endpointOf(name).split(' ')[1] ?? ''

/** What is wrong with an answer of a server that can store nothing; null if it is right. */
export function faultOfRefusal(name: string, answer: Answer): unknown[] | null {
  const { status, headers, body } = answer
  if (endpointOf(name) in storingNothing) return status === 500 ? [name, status] : null
  const said = formats.find(([path]) => pathOf(name).startsWith(path))![1](answer)
  const isTold = typeof said === 'string' && said.includes('Try again later: the ')
  return status === 503 && Number(headers.get('retry-after')) > 0 && isTold
    ? null
    : [name, status, headers.get('retry-after'), body]
}

/** Endpoints that write, and are neither among these nor known to store nothing; then those that are no more. */
export function strangers(names: readonly string[]): [missing: string[], gone: string[]] {
  const writes = (endpoint: Endpoint) =>
    endpoint.kind === 'procedure' || (endpoint.kind === 'route' && !['GET', 'HEAD'].includes(endpoint.method))
  const endpoints = features.flatMap(({ routes = [] }) => routes)
  const known = new Set([...names.map(endpointOf), ...Object.keys(storingNothing)])
  const all = new Set(endpoints.map(endpointName))
  return [
    endpoints
      .filter(writes)
      .map(endpointName)
      .filter((name) => !known.has(name)),
    [...known].filter((name) => !all.has(name)),
  ]
}
