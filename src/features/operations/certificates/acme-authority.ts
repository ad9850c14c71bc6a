/** The certificate authority of the configuration, and this server's account there. */
import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { OperatorError } from '../../../base/operator-error.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { AcmeClient } from '../../../platform/network/acme-client.ts'
import { certificatesOf, readCertificate, type Certificate } from '../../../platform/network/certificate-shelf.ts'
import { serverSecret } from '../../../platform/secrets/vault.ts'
import { isToken, keyAuthorization } from '../../../protocol/acme.ts'
import { newCertificateKey, type Authority } from './acme-orders.ts'
import { listCertificates, stateOfCertificates } from './certificate-store.ts'
import { opened } from './sealed-certificate.ts'
import { standingCertificates } from './wanted-certificates.ts'

/** Name of the secret that holds the account's key. */
const SECRET_NAME = 'acme-account'
/** Most certificates to serve. The server loads this many within a tenth of a second when it opens the port. */
export const MAX_CERTIFICATES = 1000

interface State {
  authority: Authority | null
  /** The result of `stateOfCertificates` for the certificates that are served. */
  served: string
}

const stateOf = perContext((): State => ({ authority: null, served: '' }))

/** Returns null for commands, which get no certificates. */
export const authorityOf = (ctx: Context): Authority | null => stateOf(ctx).authority

/**
 * Answer the challenges of the authority from now on. Throws `OperatorError` if `tls.acme_root_file` cannot be read.
 */
export async function openAuthority(ctx: Context): Promise<void> {
  const { config, clock, db, vault, upstream } = ctx
  const { acmeDirectoryUrl, acmeEmail, acmeRootFile } = config.tls
  const stored = await serverSecret(db, vault, SECRET_NAME, newCertificateKey)
  const key = createPrivateKey({ key: Buffer.from(stored), type: 'pkcs8', format: 'der' })
  const client = new AcmeClient({
    outbound: upstream,
    directoryUrl: acmeDirectoryUrl,
    ...(acmeRootFile !== null && { certificateAuthorities: rootIn(acmeRootFile) }),
    key,
    email: acmeEmail,
    now: () => clock.now(),
  })
  stateOf(ctx).authority = { client, key }
  // The answer follows from the token and the key, so every node can give it, whichever of them has asked. It proves
  // only that the holder of this key is here.
  certificatesOf(ctx).answerTo = (token) => (isToken(token) ? keyAuthorization(token, key) : null)
}

function rootIn(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new OperatorError(`${path} cannot be read: set tls.acme_root_file`, { cause: error })
  }
}

/** Serve the stored certificates, unless the same ones are being served. */
export async function serveStored(ctx: Context): Promise<void> {
  const state = stateOf(ctx)
  const stored = await stateOfCertificates(ctx.db)
  if (stored === state.served) return
  const rows = await listCertificates(ctx.db, {
    now: ctx.clock.now(),
    first: standingCertificates(ctx.config),
    limit: MAX_CERTIFICATES,
  })
  const certificates = rows.flatMap(({ wrapped }): Certificate[] => {
    const { chain, key } = opened(ctx, wrapped)
    const found = readCertificate(chain, key)
    return 'fault' in found ? [] : [found]
  })
  // While the clock is wrong, no stored certificate may be valid. Keep the served ones, which are valid once it is
  // right.
  if (certificates.length === 0) return
  certificatesOf(ctx).serve(certificates)
  state.served = stored
}
