/** A server that offers agents, confirms each at once, and lies about whatever a test makes it lie about. */
import { startFalseServer, type FalseServer } from './false-server.ts'

export const TOKEN = 'POST /oauth/token'
export const METADATA = 'GET /.well-known/oauth-authorization-server'
export const CLAIM = 'POST /agent/identity/claim'

/** An unsigned token of this account: an agent reads its own tokens, and verifies nothing. */
export const tokenOf = (sub: unknown): string =>
  `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.x`

export const granted = (changes: object = {}): object => ({
  access_token: tokenOf('did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'),
  token_type: 'Bearer',
  expires_in: 300,
  scope: 'atproto',
  identity_assertion: tokenOf('assertion'),
  ...changes,
})

export const shownClaim = (changes: object = {}): object => ({
  claim_attempt: { user_code: '123456', verification_uri: 'https://pds.example.com/agent/claim', ...changes },
  expires_at: '2099-01-01T00:00:00Z',
})

export function startFalseAgentServer(): FalseServer {
  const server = startFalseServer()
  const { url } = server
  let count = 0
  server.answers = {
    'GET /.well-known/oauth-protected-resource': { resource: url, authorization_servers: [url] },
    [METADATA]: {
      issuer: url,
      token_endpoint: `${url}/oauth/token`,
      agent_auth: {
        identity_endpoint: `${url}/agent/identity`,
        claim_endpoint: `${url}/agent/identity/claim`,
        identity_types_supported: ['anonymous'],
      },
    },
    'POST /agent/identity': () =>
      Response.json({ registration_id: `reg_${++count}`, claim_token: `clm_${'x'.repeat(40)}${count}` }),
    [CLAIM]: shownClaim(),
    [TOKEN]: granted(),
  }
  return server
}
