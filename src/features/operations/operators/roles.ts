/**
 * What accounts that operate this server may do. Each has one role, and one table says which roles permit which act.
 * The admin token permits what owners may do, and so do paired devices, except for `master`.
 */

/** From the most powerful role to the least. */
export const roles = ['owner', 'operator', 'moderator', 'invite-steward'] as const
export type Role = (typeof roles)[number]

export const parseRole = (text: string): Role | null => roles.find((role) => role === text) ?? null

interface Rule {
  roles: readonly Role[]
  /** The password must have been entered in the last minutes. */
  isDangerous?: true
}

const rules = {
  /** Sign in, and look after one's own sessions. */
  signIn: { roles },
  /** See how the server does. */
  observe: { roles: ['owner', 'operator', 'moderator'] },
  /** Everything that has no act of its own: keep the server going. */
  operate: { roles: ['owner', 'operator'] },
  readAudit: { roles: ['owner', 'operator', 'moderator'] },
  readAccounts: { roles: ['owner', 'operator', 'moderator'] },
  /** Take down and restore accounts, records and blobs. */
  moderate: { roles: ['owner', 'operator', 'moderator'] },
  /** Write to account holders, and mail them codes. */
  mail: { roles: ['owner', 'operator', 'moderator'] },
  /** End all sessions of an account. */
  endAccess: { roles: ['owner', 'operator', 'moderator'] },
  /** Learn codes, replace address, handle or password, read all data: each lets an operator become the account. */
  repairAccounts: { roles: ['owner', 'operator'], isDangerous: true },
  deleteAccounts: { roles: ['owner', 'operator'], isDangerous: true },
  /** Invite codes, claim codes and the waitlist. */
  invite: { roles: ['owner', 'operator', 'invite-steward'] },
  /** See who operates the server. */
  readRoles: { roles: ['owner', 'operator'] },
  manageRoles: { roles: ['owner'], isDangerous: true },
  /** Acts that take the admin token, or an owner: no paired device may perform them. */
  master: { roles: ['owner'], isDangerous: true },
} as const satisfies Record<string, Rule>

export type Act = keyof typeof rules

export const ruleOf = (act: Act): Rule => rules[act]
export const mayRole = (role: Role, act: Act): boolean => ruleOf(act).roles.includes(role)
export const actsOf = (role: Role): Act[] => (Object.keys(rules) as Act[]).filter((act) => mayRole(role, act))

/** The acts of standard methods. All other methods are `operate`. */
const methodActs: Readonly<Record<string, Act>> = {
  'com.atproto.admin.getAccountInfo': 'readAccounts',
  'com.atproto.admin.getAccountInfos': 'readAccounts',
  'com.atproto.admin.searchAccounts': 'readAccounts',
  'com.atproto.admin.getSubjectStatus': 'moderate',
  'com.atproto.admin.updateSubjectStatus': 'moderate',
  'com.atproto.admin.disableAccountInvites': 'moderate',
  'com.atproto.admin.enableAccountInvites': 'moderate',
  'com.atproto.admin.sendEmail': 'mail',
  'com.atproto.admin.updateAccountEmail': 'repairAccounts',
  'com.atproto.admin.updateAccountHandle': 'repairAccounts',
  'com.atproto.admin.updateAccountPassword': 'repairAccounts',
  'com.atproto.admin.deleteAccount': 'deleteAccounts',
  'com.atproto.admin.getInviteCodes': 'invite',
  'com.atproto.admin.disableInviteCodes': 'invite',
  'com.atproto.server.createInviteCode': 'invite',
  'com.atproto.server.createInviteCodes': 'invite',
}

export const actOfMethod = (nsid: string | null): Act => methodActs[nsid ?? ''] ?? 'operate'

/** Whether a role ranks above another, or above none. Owners rank above each other too. */
export const standsAbove = (role: Role, other: Role | null): boolean =>
  role === 'owner' || other === null || roles.indexOf(role) < roles.indexOf(other)
