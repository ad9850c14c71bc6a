/** A server on which every endpoint that writes can succeed, and another one from which people move there. */
import { join } from 'node:path'
import { MASTER_KEY, type ConfigOverrides } from '../../support/servers/config.ts'
import { NOTICE_AUTHORITY } from '../../support/clients/service-signer.ts'
import { useWorldOnFile } from '../../support/file-world.ts'
import { freePort } from '../../support/ports.ts'
import { fixedIssuer, issuerKey } from '../../support/servers/issuer.ts'
import { loggedMails } from '../../support/servers/mail.ts'
import { startProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { writingRoutes, type Send } from './writing-routes.ts'

const RELAY = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'
/** Programs that wait for their owner may ask once in five seconds. */
export const POLL_SECS = 6

export type PreparedRequest = [name: string, send: Send]

/** `folder` has what the servers keep beside the data directory. */
export function useWritingWorld(folder: string, config: ConfigOverrides = {}) {
  const issuer = issuerKey('idp-1')
  const {
    pds,
    plc: directory,
    web,
  } = useWorldOnFile({
    plc: true,
    web: [],
    config: {
      signingKeyMasterKey: MASTER_KEY,
      rateLimit: { enabled: false },
      accounts: { passwordOptional: true },
      waitlist: { enabled: true },
      notifications: { relay: RELAY },
      formerUrls: ['http://former.test'],
      archives: { folder: join(folder, 'archives') },
      alerts: { mailTo: ['operator@example.org'] },
      spaces: { enabled: true },
      cases: { noticeAuthorities: [NOTICE_AUTHORITY] },
      agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true, trustedIssuers: [fixedIssuer([issuer])] },
      ...config,
    },
  })
  /** A process of its own: what is in the way of the other server is not in its way. */
  const old = setUp(async () => {
    const env = {
      PORT: String(await freePort()),
      SERVICE_DATA_DIR: join(folder, 'old'),
      SERVICE_PLC_DIRECTORY_URL: directory.url,
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_LOG_FORMAT: 'json',
    }
    return startProgram(['dev'], env, folder)
  })

  /** A request for every endpoint that writes. `crowd` begins the names of their accounts. */
  async function prepare(crowd?: string): Promise<PreparedRequest[]> {
    const other = {
      url: old.url,
      get mails() {
        return loggedMails(old)
      },
    }
    const prepared: PreparedRequest[] = []
    for (const [name, make] of Object.entries(writingRoutes({ pds, old: other, directory, web, issuer }, crowd)))
      prepared.push([name, await make()])
    await pds.ctx.background.settled()
    return prepared
  }

  return { pds, prepare }
}
