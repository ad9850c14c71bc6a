/**
 * Methods that a restricted token must not call, here or, with a service token, elsewhere.
 *
 * Names are compared case-insensitively, because another service may be lenient.
 */

/**
 * Methods that are never forwarded and never get a service token: they would give another server control of the
 * account.
 */
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
 * Methods that manage accounts or identities, on this server or another: an agent never calls them, whatever its
 * scopes. Includes methods that are not known yet.
 */
export function isAccountMethod(nsid: string): boolean {
  const name = nsid.toLowerCase()
  return isProtectedMethod(name) || /^com\.atproto\.(?:server|admin)\./.test(name) || managingMethods.has(name)
}

const managingMethods = new Set(['com.atproto.identity.submitplcoperation', 'com.atproto.repo.importrepo'])

/**
 * Draft methods of permissioned data. This server never forwards them to another server and issues no service tokens
 * for them: another server must not receive what an account shares with few people.
 */
export const isDraftMethod = (nsid: string): boolean => /^com\.atproto\.(space|simplespace)(\.|$)/i.test(nsid)

/**
 * Methods of services of the public network, which do not handle permissioned data: the URI of a space would only
 * reveal to them that the space exists and what is in it.
 */
export const isPublicMethod = (nsid: string): boolean =>
  /^(?:app\.bsky|chat\.bsky|com\.atproto|tools\.ozone)\./i.test(nsid)

/** Whether an audience names, by its fragment, a service of permissioned data. */
export const isDraftAudience = (aud: string): boolean => /#atproto_space/i.test(aud)

/**
 * Direct messages, including future methods, and account migration: refused to an app password without the privilege.
 */
export function isPrivilegedMethod(nsid: string): boolean {
  const name = nsid.toLowerCase()
  return isChatMethod(name) || name === 'com.atproto.server.createaccount'
}

/**
 * The method that registers a device for the notifications of an account, for as long as the service keeps the
 * registration.
 */
export const isPushRegistration = (nsid: string): boolean => nsid.toLowerCase() === 'app.bsky.notification.registerpush'

/**
 * Methods of the AppView that return an account's private data. The namespaces include methods that are not known yet,
 * and methods that write.
 */
export const isPrivateMethod = (nsid: string): boolean => privateMethods.some((pattern) => pattern.test(nsid))

const privateMethods = [
  /^app\.bsky\.(?:ageassurance|bookmark|contact|draft|notification)\./i,
  /^app\.bsky\.graph\.get(?:list)?mutes$/i,
  /^app\.bsky\.unspecced\.getageassurancestate$/i,
]

/** Methods that read, by their names. Another service may answer them whatever the HTTP method. */
export const isReadByName = (nsid: string): boolean => /\.(?:get|list|search)[a-z0-9]*$/i.test(nsid)

/** Direct messages. */
export const isChatMethod = (nsid: string): boolean => nsid.toLowerCase().startsWith('chat.bsky.')
