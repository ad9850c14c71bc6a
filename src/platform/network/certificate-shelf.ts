/** The certificates with which this server encrypts connections. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { Signal } from '../../base/signal.ts'
import { perContext } from '../context.ts'
import type { Millis } from '../../protocol/identifiers.ts'

/** A certificate with its key. */
export interface Certificate {
  /** The DNS names that it is for, in lower case; a wildcard begins with `*.`. */
  names: readonly string[]
  /** The certificate and its chain, in PEM. */
  chain: string
  /** In PEM. */
  key: string
  notBefore: Millis
  notAfter: Millis
}

/** The certificates that listeners serve. Features put them here, and listeners learn that they have changed. */
export class CertificateShelf {
  #served: readonly Certificate[] = []
  readonly changed = new Signal()
  /** Returns the proof that an authority expects for the token of an HTTP-01 challenge; null if there is none. */
  answerTo: (token: string) => string | null = () => null

  get served(): readonly Certificate[] {
    return this.#served
  }

  /** Serve these certificates instead of the former ones. */
  serve(certificates: readonly Certificate[]): void {
    this.#served = certificates
    this.changed.notify()
  }
}

export const certificatesOf = perContext(() => new CertificateShelf())

/** Returns the certificate, or why it cannot be served. `chain` and `key` are in PEM. The chain is not looked at. */
export function readCertificate(chain: string, key: string): Certificate | { fault: string } {
  const leaf = attempt(() => new X509Certificate(chain))
  if (leaf === null) return { fault: 'has no certificate in PEM' }
  const privateKey = attempt(() => createPrivateKey(key))
  if (privateKey === null) return { fault: 'has a key that is not a private key in PEM without a passphrase' }
  if (!leaf.checkPrivateKey(privateKey)) return { fault: 'has a key of another certificate' }
  const names = namesOf(leaf)
  if (names.length === 0) return { fault: 'has no DNS name' }
  return { names, chain, key, notBefore: Date.parse(leaf.validFrom), notAfter: Date.parse(leaf.validTo) }
}

/**
 * Returns the certificate, or why a listener cannot be opened with it, as with a chain whose end is cut off. One such
 * certificate would keep all others from being served.
 */
export function readWholeCertificate(chain: string, key: string): Certificate | { fault: string } {
  const found = readCertificate(chain, key)
  const isWhole = 'fault' in found || attempt(() => createSecureContext({ cert: chain, key })) !== null
  return isWhole ? found : { fault: 'has a chain that is malformed' }
}

function attempt<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}

/** A name with characters that host names do not have is in quotes, and is the name of no host. */
const namesOf = ({ subjectAltName = '' }: X509Certificate): string[] =>
  subjectAltName.split(', ').flatMap((name) => (name.startsWith('DNS:') ? [name.slice(4).toLowerCase()] : []))

/** Whether a certificate for these names is one for a host: a wildcard stands for one label. RFC 6125, 6.4.3. */
export const covers = ({ names }: Pick<Certificate, 'names'>, host: string): boolean =>
  names.includes(host) || names.includes(`*.${host.slice(host.indexOf('.') + 1)}`)
