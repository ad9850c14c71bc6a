/** The door of certificates: they are in files or come from an authority, unless a reverse proxy has them. */
export { certificateFaults, CERTIFICATES_PATH, type CertificatesView } from './certificate-report.ts'
