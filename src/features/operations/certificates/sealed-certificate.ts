/** A certificate as it is stored, sealed under the master key. */
import { X509Certificate } from 'node:crypto'
import type { Context } from '../../../platform/context.ts'
import type { Certificate } from '../../../platform/network/certificate-shelf.ts'
import { renewalName } from '../../../protocol/certificate-request.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

type Contents = Pick<Certificate, 'chain' | 'key'>

export const sealed = ({ vault }: Pick<Context, 'vault'>, contents: Contents): string =>
  vault.wrap(Buffer.from(JSON.stringify(contents)))

export const opened = ({ vault }: Pick<Context, 'vault'>, wrapped: string): Contents =>
  JSON.parse(Buffer.from(vault.unwrap(wrapped)).toString()) as Contents

/** Returns the identifier under which the authority gives advice about its renewal; null if it has none. */
export function nameForRenewal({ chain }: Pick<Contents, 'chain'>): string | null {
  const { raw, serialNumber } = new X509Certificate(chain)
  return renewalName(raw, serialNumber)
}

/** Returns when to renew unless the authority advises otherwise: after two thirds of the certificate's life. */
export const renewalTime = ({ notBefore, notAfter }: Pick<Certificate, 'notBefore' | 'notAfter'>): Millis =>
  notBefore + Math.floor(((notAfter - notBefore) * 2) / 3)
