/**
 * For the load generator: goes through the pages like a person and prints an access token and the key it is bound to,
 * `{"accessToken": "…", "privateJwk": {…}}`. What to sign in to stands in `BENCH_URL`, `BENCH_PUBLIC_URL`,
 * `BENCH_HANDLE` and `BENCH_PASSWORD`.
 */
import { TestClock } from '../support/clock.ts'
import { OAuthClient } from '../support/clients/oauth-client.ts'

function variable(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set`)
  return value
}

const url = variable('BENCH_URL').replace(/\/$/, '')
const publicUrl = (process.env.BENCH_PUBLIC_URL ?? url).replace(/\/$/, '')
const client = new OAuthClient({ url, publicUrl, clock: new TestClock() })
const { access_token: accessToken } = await client.signIn({
  identifier: variable('BENCH_HANDLE'),
  password: variable('BENCH_PASSWORD'),
})
process.stdout.write(
  `${JSON.stringify({ accessToken, privateJwk: client.key.privateKey.export({ format: 'jwk' }) })}\n`,
)
