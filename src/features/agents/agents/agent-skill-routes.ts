/**
 * `GET /auth.md`: instructions for programs that want to act for an account, with the addresses and limits of this
 * server.
 */
import { route } from '../../../http/endpoint.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { CLAIM_GRANT, ID_JAG, JWT_BEARER_GRANT, MAX_AGENT_NAME_CHARS } from '../../../protocol/agent-names.ts'
import { AGENT_TOKEN_TTL_SECS } from './agent-tokens.ts'
import { POLL_SECS } from './agent-grants.ts'

const listed = (scopes: readonly string[]): string => scopes.map((scope) => `- \`${scope}\``).join('\n')

const json = (value: object): string => `\`\`\`json\n${JSON.stringify(value)}\n\`\`\``

const anonymous = ({ publicUrl }: Config): string => `### anonymous

You know nothing about the account. \`POST ${publicUrl}/agent/identity\`:

${json({ type: 'anonymous' })}

The response has \`registration_id\` and \`claim_token\`. Get a code with \`POST ${publicUrl}/agent/identity/claim\`:

${json({ claim_token: 'clm_…' })}

The response has \`claim_attempt.user_code\`. The same request returns the same code until it expires, and then a new one.
The \`identity_assertion\` that you get before the confirmation cannot be exchanged.`

const serviceAuth = ({ publicUrl }: Config): string => `### service_auth

You know the email address of the account. \`POST ${publicUrl}/agent/identity\`:

${json({ type: 'service_auth', login_hint: 'person@example.com' })}

The response has \`registration_id\`, \`claim_token\` and \`claim.user_code\`. \`access_denied\`: no account here has the address.`

const identityAssertion = ({ publicUrl, agentAuth: { trustedIssuers } }: Config): string => `### identity_assertion

A provider that this server trusts vouches for you (${trustedIssuers.map(({ issuer }) => `\`${issuer}\``).join(', ')}). \`POST ${publicUrl}/agent/identity\`:

${json({ type: 'identity_assertion', assertion_type: ID_JAG, assertion: 'eyJ…' })}

\`interaction_required\` (401) has \`claim_token\` and \`claim.user_code\`: show the code. Once the person has confirmed you, the
same request returns an \`identity_assertion\`. \`login_required\`: the person has to sign in at the provider again.
\`issuer_not_enabled\`: this server does not trust the provider.`

const document = (config: Config): string => {
  const { publicUrl, serviceName, agentAuth } = config
  const ways = [
    ...(agentAuth.anonymousEnabled ? [anonymous(config)] : []),
    ...(agentAuth.serviceAuthEnabled ? [serviceAuth(config)] : []),
    ...(agentAuth.trustedIssuers.length > 0 ? [identityAssertion(config)] : []),
  ]
  return `# Acting for an account on ${serviceName}

You are a program. You may act for an account on ${publicUrl} once its holder has confirmed it. All bodies are JSON,
except those of the token endpoint, which are forms.

## 1. Register

${ways.join('\n\n')}

Add \`client_name\`, of at most ${MAX_AGENT_NAME_CHARS} characters, to say what the person calls you. The person sees it, unverified, on the
confirmation page, in mails and in the list of programs.

## 2. Show the code

Show the six digits and the address where to enter them, \`${agentAuth.verificationUri}\`, to the person. A code is valid for
${agentAuth.userCodeTtlSecs} seconds, a claim token for ${agentAuth.claimTokenTtlSecs} seconds. Never ask for a password.

## 3. Wait

\`POST ${publicUrl}/oauth/token\` with \`grant_type=${CLAIM_GRANT}\` and \`claim_token\`, once every ${POLL_SECS} seconds.

| \`error\` | What to do |
| --- | --- |
| \`authorization_pending\` | Wait, then ask again |
| \`slow_down\` | Add ${POLL_SECS} seconds to the interval |
| \`expired_token\` | The code was denied or has expired: get another one, or register again |
| \`access_denied\` | You were refused or revoked, or the account is not active: stop |
| \`invalid_grant\` | The claim token is unknown or used up: register again |

A success has \`access_token\` (${AGENT_TOKEN_TTL_SECS} seconds) and \`identity_assertion\` (${agentAuth.assertionTtlSecs} seconds).

## 4. Call

Send \`Authorization: Bearer <access_token>\` to \`${publicUrl}/xrpc/…\`. A confirmed agent has these scopes, and no others:

${listed(agentAuth.grantedScopes)}

## 5. Get further tokens

\`POST ${publicUrl}/oauth/token\` with \`grant_type=${JWT_BEARER_GRANT}\` and \`assertion=<identity_assertion>\`.
\`invalid_grant\`: the assertion has expired; register again. \`access_denied\`: you were revoked; stop.

\`InsufficientScope\` (403): you lack the scope that \`message\` and \`error_description\` name, no scope opens the method, or the
person lets you read nothing private (notifications, bookmarks, mutes, drafts, contacts, age checks).
\`RateLimitExceeded\` (429): wait for as many seconds as \`Retry-After\` says. A token a minute is more than you need.
A revoked agent gets 401 at its next request. Nothing that you can be granted lets you manage agents, accounts or
identities.
`
}

const MAX_AGE_SECS = 300

export const agentSkillRoutes = [
  route('GET', '/auth.md', {
    capability: 'agents',
    handler: ({ ctx }) =>
      new Response(document(ctx.config), {
        headers: { 'Content-Type': 'text/markdown; charset=utf-8', 'Cache-Control': `public, max-age=${MAX_AGE_SECS}` },
      }),
  }),
]
