/**
 * Methods that a token of limited reach may not call, here or, by way of a service token, elsewhere.
 *
 * Names are compared without regard to case, because a service that is asked later may be lenient.
 */

/** Never forwarded and never the subject of a service token: they would hand the account to another server. */
const protectedMethods = new Set(
  [
    'com.atproto.admin.sendEmail',
    'com.atproto.identity.requestPlcOperationSignature',
    'com.atproto.identity.signPlcOperation',
    'com.atproto.identity.updateHandle',
    'com.atproto.server.activateAccount',
    'com.atproto.server.confirmEmail',
    'com.atproto.server.createAppPassword',
    'com.atproto.server.deactivateAccount',
    'com.atproto.server.getAccountInviteCodes',
    'com.atproto.server.getSession',
    'com.atproto.server.listAppPasswords',
    'com.atproto.server.requestAccountDelete',
    'com.atproto.server.requestEmailConfirmation',
    'com.atproto.server.requestEmailUpdate',
    'com.atproto.server.revokeAppPassword',
    'com.atproto.server.updateEmail',
  ].map((nsid) => nsid.toLowerCase()),
)

export const isProtectedMethod = (nsid: string): boolean => protectedMethods.has(nsid.toLowerCase())

/**
 * Drafts of permissioned data. As long as they are not served here, nobody is sent on with them and no token is made
 * for them: another server must not come to hold what an account shows to a few.
 */
export const isDraftMethod = (nsid: string): boolean => /^com\.atproto\.(space|simplespace)(\.|$)/i.test(nsid)

/** The services of the same drafts, by the fragment in an audience. */
export const isDraftAudience = (aud: string): boolean => /#atproto_space/i.test(aud)

/** Direct messages, whatever they will be called, and moving the account: closed to an app password without the grant. */
export function isPrivilegedMethod(nsid: string): boolean {
  const name = nsid.toLowerCase()
  return isChatMethod(name) || name === 'com.atproto.server.createaccount'
}

const isChatMethod = (nsid: string): boolean => nsid.toLowerCase().startsWith('chat.bsky.')
