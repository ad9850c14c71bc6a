/** Certificates that are signed with their own keys, or with that of such a one. */
import * as x509 from '@peculiar/x509'
import 'reflect-metadata'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Returns a certificate for `localhost` that is valid between two times, and its key, in PEM. */
export async function selfSigned(notBefore: number, notAfter: number): Promise<{ cert: string; key: string }> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=localhost',
    keys,
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }])],
  })
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey)
  return { cert: certificate.toString('pem'), key: x509.PemConverter.encode(key, 'PRIVATE KEY') }
}

const HOUR_MILLIS = 3_600_000

/** Returns a root, in PEM, and a certificate in DER that it has signed and that says where revoked ones are listed. */
export async function certificateWithList(listUrl: string): Promise<{ root: string; leaf: Buffer }> {
  const validity = { notBefore: new Date(Date.now() - HOUR_MILLIS), notAfter: new Date(Date.now() + HOUR_MILLIS) }
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    name: 'CN=root',
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true)],
  })
  const leaf = await x509.X509CertificateGenerator.create({
    ...validity,
    subject: 'CN=leaf',
    issuer: root.subject,
    publicKey: (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])).publicKey,
    signingKey: keys.privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.CRLDistributionPointsExtension([listUrl])],
  })
  return { root: root.toString('pem'), leaf: Buffer.from(leaf.rawData) }
}
