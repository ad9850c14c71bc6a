/** What forms of the console do: each act is a request to an endpoint. */
import type { ConsoleAct } from './console-act.ts'
import { caseActs } from './console-case-acts.ts'
import { parseDid } from '../../../protocol/identifiers.ts'

const did = (form: URLSearchParams): string => parseDid(form.get('did') ?? '') ?? ''
const ofAccount = (act: string) => (form: URLSearchParams) =>
  `/v1/admin/accounts/${encodeURIComponent(did(form) || 'none')}/${act}`
/** A name or an id as a segment of a path: never one that leads to another endpoint. */
const segment = (form: URLSearchParams, name: string): string => {
  const value = form.get(name) ?? ''
  return /^[\w-]{1,100}$/.test(value) ? value : 'none'
}
const method = (nsid: string) => () => `/xrpc/com.atproto.${nsid}`
const text = (form: URLSearchParams, name: string) => form.get(name)?.trim() ?? ''
const nothing = () => ({})

/** The fields `subject` and `did` say what it is about: an account, `at://…`, or the CID of a blob. */
const subjectOf = (form: URLSearchParams) => {
  const subject = text(form, 'subject')
  if (subject === '') return { $type: 'com.atproto.admin.defs#repoRef', did: did(form) }
  if (!subject.startsWith('at://')) return { $type: 'com.atproto.admin.defs#repoBlobRef', did: did(form), cid: subject }
  return { $type: 'com.atproto.repo.strongRef', uri: subject, cid: text(form, 'cid') }
}

const statusAct = (applied: boolean, done: string): ConsoleAct => ({
  path: method('admin.updateSubjectStatus'),
  json: (form) => ({ subject: subjectOf(form), takedown: { applied } }),
  done,
})

/** An empty field is no change of a quota. */
const quotaOf = (form: URLSearchParams, name: string): object => {
  const given = text(form, name)
  return given === '' ? {} : { [name]: given === 'default' ? null : Number(given) }
}

export const consoleActs: Readonly<Record<string, ConsoleAct>> = {
  ...caseActs,
  takedown: statusAct(true, 'It is taken down.'),
  restore: statusAct(false, 'The takedown is lifted.'),
  'end-access': { path: ofAccount('revoke-credentials'), json: nothing, done: 'All access to the account has ended.' },
  'waitlist-invite': {
    path: () => '/v1/admin/waitlist/invite',
    json: (form) => ({ email: text(form, 'email') }),
    done: 'The invite is on its way.',
  },
  'waitlist-remove': {
    path: () => '/v1/admin/waitlist/remove',
    json: (form) => ({ email: text(form, 'email') }),
    done: 'The address is off the list.',
  },
  'end-agent': {
    path: () => '/v1/admin/agents/revoke',
    json: (form) => ({ registrationId: text(form, 'id') }),
    done: 'The program may no longer act.',
  },
  'end-agents-of': {
    path: () => '/v1/admin/agents/revoke',
    json: (form) => ({ issuer: text(form, 'issuer') }),
    done: 'The programs of this provider may no longer act.',
  },
  'rotate-push-keys': {
    path: () => '/v1/admin/notifications/sender-keys/rotate',
    json: nothing,
    done: 'A new key seals pushes.',
  },
  'revoke-push-key': {
    path: (form) => `/v1/admin/notifications/sender-keys/${segment(form, 'kid')}/revoke`,
    json: nothing,
    done: 'The key is revoked.',
  },
  configure: {
    path: () => '/v1/admin/configuration',
    json: (form) => ({ name: text(form, 'name'), value: text(form, 'value') || null }),
    done: 'The value is replaced, on every node.',
  },
  'end-one-access': {
    path: ofAccount('access/end'),
    json: (form) => ({ id: form.get('id') ?? '' }),
    done: 'It no longer has access.',
  },
  'reset-mail': { path: ofAccount('reset-mail'), json: nothing, done: 'A reset code was mailed to the holder.' },
  'reset-code': {
    path: ofAccount('reset-token'),
    json: nothing,
    done: 'This code resets the password once, within a quarter of an hour.',
    reveals: { member: 'token', label: 'Reset code' },
  },
  address: {
    path: ofAccount('email'),
    json: (form) => ({ email: text(form, 'email') }),
    done: 'The account has the new address, which is not confirmed yet.',
  },
  handle: {
    path: method('admin.updateAccountHandle'),
    json: (form) => ({ did: did(form), handle: text(form, 'handle') }),
    done: 'The account has the new handle.',
  },
  quota: {
    path: ofAccount('quota'),
    json: (form) => ({ ...quotaOf(form, 'records'), ...quotaOf(form, 'blobBytes') }),
    done: 'The quota is set.',
  },
  mail: {
    path: method('admin.sendEmail'),
    json: (form) => ({
      recipientDid: did(form),
      senderDid: did(form),
      content: form.get('content') ?? '',
      ...(text(form, 'about') === '' ? {} : { subject: text(form, 'about') }),
    }),
    done: 'The mail was sent.',
  },
  'disable-invites': {
    path: method('admin.disableAccountInvites'),
    json: (form) => ({ account: did(form) }),
    done: 'The account can no longer invite.',
  },
  'enable-invites': {
    path: method('admin.enableAccountInvites'),
    json: (form) => ({ account: did(form) }),
    done: 'The account can invite again.',
  },
  delete: {
    path: method('admin.deleteAccount'),
    json: (form) => ({ did: did(form) }),
    done: 'The account is deleted.',
  },
  invite: {
    path: method('server.createInviteCode'),
    json: (form) => ({ useCount: Number(text(form, 'uses') || '1') }),
    done: 'The invite code is made.',
    reveals: { member: 'code', label: 'Invite code' },
  },
  'disable-invite': {
    path: method('admin.disableInviteCodes'),
    json: (form) => ({ codes: [text(form, 'code')] }),
    done: 'The invite code is disabled.',
  },
  claim: {
    path: () => '/v1/accounts/claim-codes',
    json: (form) => ({ count: 1, ...(text(form, 'domain') === '' ? {} : { domain: text(form, 'domain') }) }),
    done: 'The claim code is made. It is good for a day.',
    reveals: { member: 'codes', label: 'Claim code' },
  },
  'revoke-claim': {
    path: () => '/v1/accounts/claim-codes/revoke',
    json: (form) => ({ code: text(form, 'code') }),
    done: 'The claim code is revoked.',
  },
  role: {
    path: () => '/v1/admin/operators',
    json: (form) => ({ account: text(form, 'account').replace(/^@/, ''), role: text(form, 'role') || null }),
    done: 'The role is changed.',
  },
  'end-session': {
    path: (form) => `/v1/admin/sessions/${segment(form, 'id')}/end`,
    json: nothing,
    done: 'The session has ended.',
  },
  'retry-steps': {
    path: () => '/v1/admin/steps/retry',
    json: (form) => ({ id: text(form, 'id') }),
    done: 'The step is tried again.',
  },
  'drop-steps': {
    path: () => '/v1/admin/steps/drop',
    json: (form) => ({ id: text(form, 'id') }),
    done: 'The step is dropped.',
  },
  sweep: {
    path: (form) => `/v1/admin/sweeps/${segment(form, 'name')}/run`,
    json: nothing,
    done: 'The sweep has run.',
  },
  crawl: { path: () => '/v1/admin/request-crawl', json: nothing, done: 'The relays were asked to crawl this server.' },
}
