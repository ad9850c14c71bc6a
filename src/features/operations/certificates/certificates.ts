/** The door of certificates: they come from files or from an authority, unless a reverse proxy holds them. */
export { responderAddresses, type ResponderPlace } from './challenge-records.ts'
export { delegatedNames } from './wanted-certificates.ts'
export { certificateFaults, CERTIFICATES_PATH, isNearEnd, type CertificatesView } from './certificate-report.ts'
