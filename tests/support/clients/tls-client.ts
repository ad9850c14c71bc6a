/** A client that looks at the certificate of a server, and trusts one authority alone. */
import { connect } from 'node:tls'

/** Returns the names and the number of the certificate, or the code of the error. `root`: of the authority, in PEM. */
export function servedCertificate(
  port: number,
  root: string,
  servername: string,
): Promise<{ names: string; serial: string } | string> {
  const { promise, resolve } = Promise.withResolvers<{ names: string; serial: string } | string>()
  const socket = connect({ host: '127.0.0.1', port, servername, ca: root }, () => {
    const { subjectaltname = '', serialNumber } = socket.getPeerCertificate()
    resolve({ names: subjectaltname, serial: serialNumber })
    socket.destroy()
  })
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  return promise
}
