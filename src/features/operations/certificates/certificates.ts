/** The door of certificates: they are in files or come from an authority, unless a reverse proxy has them. */
export { responderAddresses, type ResponderPlace } from './challenge-records.ts'
export { delegatedNames } from './wanted-certificates.ts'
export { certificateFaults, CERTIFICATES_PATH, isNearEnd, type CertificatesView } from './certificate-report.ts'
