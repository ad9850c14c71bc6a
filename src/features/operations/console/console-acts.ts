/** What forms of the console do: each act is a request to an endpoint. */
import { textIn, type ConsoleAct } from './console-act.ts'
import { caseActs } from './console-case-acts.ts'
import { consoleTexts as texts } from './console-texts.ts'
import { peopleTexts } from './people-texts.ts'
import type { Wording } from '../../../http/html.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { recordUriOf } from '../../../protocol/record-links.ts'

const did = (form: URLSearchParams): string => parseDid(form.get('did') ?? '') ?? ''
const ofAccount = (act: string) => (form: URLSearchParams) =>
  `/v1/admin/accounts/${encodeURIComponent(did(form) || 'none')}/${act}`
/** A name or an id as a path segment, which can never lead to another endpoint. */
const segment = (form: URLSearchParams, name: string): string => {
  const value = form.get(name) ?? ''
  return /^[\w-]{1,100}$/.test(value) ? value : 'none'
}
const method = (nsid: string) => () => `/xrpc/com.atproto.${nsid}`
const nothing = () => ({})

/** The record that `subject` names by its URI or a link; null if it names something else. */
const recordOf = (form: URLSearchParams): string | null => {
  const uri = recordUriOf(textIn(form, 'subject'))
  return uri.startsWith('at://') ? uri : null
}

/** A subject other than a record: the CID of a blob, or without `subject` the account that `did` names. */
const otherSubject = (form: URLSearchParams) => {
  const cid = textIn(form, 'subject')
  return cid === ''
    ? { $type: 'com.atproto.admin.defs#repoRef', did: did(form) }
    : { $type: 'com.atproto.admin.defs#repoBlobRef', did: did(form), cid }
}

const statusAct = (applied: boolean, done: Wording): ConsoleAct => ({
  path: method('admin.updateSubjectStatus'),
  // The reference to a record needs the CID of its present version, although the takedown applies to all versions.
  lookUp(form) {
    const uri = recordOf(form)
    return uri && `/xrpc/com.atproto.admin.getSubjectStatus?uri=${encodeURIComponent(uri)}`
  },
  json: (form, found) => ({
    subject: found === undefined ? otherSubject(form) : (found as { subject: object }).subject,
    takedown: { applied },
  }),
  // A field without a visible character must not stand for the whole account.
  faultOf: (form) => (form.has('subject') && textIn(form, 'subject') === '' ? peopleTexts.subject : null),
  done,
})

/** An empty field does not change a quota. */
const quotaOf = (form: URLSearchParams, name: string): object => {
  const given = textIn(form, name)
  return given === '' ? {} : { [name]: given === 'default' ? null : Number(given) }
}
/** JSON would turn anything that is not a number into null, which would reset the quota. */
const isQuota = (given: string): boolean => /^(\d{1,15}|default)?$/.test(given)

export const consoleActs: Readonly<Record<string, ConsoleAct>> = {
  ...caseActs,
  takedown: statusAct(true, texts.isTakenDown),
  restore: statusAct(false, texts.isRestored),
  'end-access': { path: ofAccount('revoke-credentials'), json: nothing, done: texts.accessEnded },
  'waitlist-invite': {
    path: () => '/v1/admin/waitlist/invite',
    json: (form) => ({ email: textIn(form, 'email') }),
    done: texts.inviteSent,
  },
  'waitlist-remove': {
    path: () => '/v1/admin/waitlist/remove',
    json: (form) => ({ email: textIn(form, 'email') }),
    done: texts.waitlistRemoved,
  },
  'end-agent': {
    path: () => '/v1/admin/agents/revoke',
    json: (form) => ({ registrationId: textIn(form, 'id') }),
    done: texts.agentEnded,
  },
  'end-agents-of': {
    path: () => '/v1/admin/agents/revoke',
    json: (form) => ({ issuer: textIn(form, 'issuer') }),
    done: texts.agentsEnded,
  },
  'rotate-push-keys': {
    path: () => '/v1/admin/notifications/sender-keys/rotate',
    json: nothing,
    done: texts.keysRotated,
  },
  'revoke-push-key': {
    path: (form) => `/v1/admin/notifications/sender-keys/${segment(form, 'kid')}/revoke`,
    json: nothing,
    done: texts.keyRevoked,
  },
  configure: {
    path: () => '/v1/admin/configuration',
    json: (form) => ({ name: textIn(form, 'name'), value: textIn(form, 'value') || null }),
    done: texts.configured,
  },
  'end-one-access': {
    path: ofAccount('access/end'),
    json: (form) => ({ id: form.get('id') ?? '' }),
    done: texts.oneAccessEnded,
  },
  'reset-mail': { path: ofAccount('reset-mail'), json: nothing, done: texts.resetMailed },
  'reset-code': {
    path: ofAccount('reset-token'),
    json: nothing,
    done: texts.resetShown,
    reveals: { member: 'token', label: texts.resetCode },
  },
  address: {
    path: ofAccount('email'),
    json: (form) => ({ email: textIn(form, 'email') }),
    done: texts.addressChanged,
  },
  handle: {
    path: method('admin.updateAccountHandle'),
    json: (form) => ({ did: did(form), handle: textIn(form, 'handle') }),
    done: texts.handleChanged,
  },
  quota: {
    path: ofAccount('quota'),
    json: (form) => ({ ...quotaOf(form, 'records'), ...quotaOf(form, 'blobBytes') }),
    faultOf: (form) =>
      ['records', 'blobBytes'].every((name) => isQuota(textIn(form, name))) ? null : peopleTexts.quotaHint,
    done: texts.quotaSet,
  },
  mail: {
    path: method('admin.sendEmail'),
    json: (form) => ({
      recipientDid: did(form),
      senderDid: did(form),
      content: form.get('content') ?? '',
      ...(textIn(form, 'about') === '' ? {} : { subject: textIn(form, 'about') }),
    }),
    done: texts.mailSent,
  },
  'disable-invites': {
    path: method('admin.disableAccountInvites'),
    json: (form) => ({ account: did(form) }),
    done: texts.invitesStopped,
  },
  'enable-invites': {
    path: method('admin.enableAccountInvites'),
    json: (form) => ({ account: did(form) }),
    done: texts.invitesAllowed,
  },
  delete: {
    path: method('admin.deleteAccount'),
    json: (form) => ({ did: did(form) }),
    done: texts.accountDeleted,
  },
  invite: {
    path: method('server.createInviteCode'),
    json: (form) => ({ useCount: Number(textIn(form, 'uses') || '1') }),
    done: texts.inviteMade,
    reveals: { member: 'code', label: texts.inviteCode },
  },
  'disable-invite': {
    path: method('admin.disableInviteCodes'),
    json: (form) => ({ codes: [textIn(form, 'code')] }),
    done: texts.inviteDisabled,
  },
  claim: {
    path: () => '/v1/accounts/claim-codes',
    json: (form) => ({ count: 1, ...(textIn(form, 'domain') === '' ? {} : { domain: textIn(form, 'domain') }) }),
    done: texts.claimMade,
    reveals: { member: 'codes', label: texts.claimCode },
  },
  'revoke-claim': {
    path: () => '/v1/accounts/claim-codes/revoke',
    json: (form) => ({ code: textIn(form, 'code') }),
    done: texts.claimRevoked,
  },
  role: {
    path: () => '/v1/admin/operators',
    json: (form) => ({ account: textIn(form, 'account').replace(/^@/, ''), role: textIn(form, 'role') || null }),
    done: texts.roleChanged,
  },
  'end-session': {
    path: (form) => `/v1/admin/sessions/${segment(form, 'id')}/end`,
    json: nothing,
    done: texts.sessionEnded,
  },
  'retry-steps': {
    path: () => '/v1/admin/steps/retry',
    json: (form) => ({ id: textIn(form, 'id') }),
    done: texts.stepRetried,
  },
  'drop-steps': {
    path: () => '/v1/admin/steps/drop',
    json: (form) => ({ id: textIn(form, 'id') }),
    done: texts.stepDropped,
  },
  sweep: {
    path: (form) => `/v1/admin/sweeps/${segment(form, 'name')}/run`,
    json: nothing,
    done: texts.swept,
  },
  crawl: { path: () => '/v1/admin/request-crawl', json: nothing, done: texts.crawlAsked },
}
