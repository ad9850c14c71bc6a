/** Every kind of mail in every language, as it arrives over SMTP, with hostile values in it. */
import { expect, test } from 'bun:test'
import { contentsOf, type EnglishTexts } from '../../../src/http/texts.ts'
import { announceIn, type ListedEvent } from '../../../src/features/identity/account-events/account-events.ts'
import { noticeTexts } from '../../../src/features/identity/account-events/notice-texts.ts'
import * as bodies from '../../../src/features/identity/mails/mail-bodies.ts'
import { mailTexts } from '../../../src/features/identity/mails/mail-texts.ts'
import { decisionTexts } from '../../../src/features/operations/cases/decision-texts.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { languages, type Language } from '../../../src/protocol/languages.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { readMail } from '../../support/clients/mail-reading.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'

const AT = Date.UTC(2027, 2, 9, 14, 5)
const HOSTILE = `Reader\r\nBcc: all@example.com\r\n\r\n\u202eevil\u2066\u200b\u0007 ${'long '.repeat(100)}`
const DECEPTIVE = /[\p{Cf}\u2028\u2029]|(?!\n)\p{Cc}/u
const FORMER = 'https://former.example'

const world = setUp(async () => {
  const box = await startMailbox({ tls: 'none' })
  const email = {
    provider: 'smtp',
    from: 'pds@example.org',
    fromName: 'サーバー, "PDS"',
    smtpHost: 'localhost',
    smtpPort: box.port,
    smtpTls: 'none',
  }
  const config = { email, rateLimit: { enabled: false } } as Parameters<typeof startPds>[0]
  const pds = await startPds(config, { mailer: undefined })
  return {
    box,
    pds,
    async [Symbol.asyncDispose]() {
      await pds[Symbol.asyncDispose]()
      await box[Symbol.asyncDispose]()
    },
  }
})

/** The events that have a mail, by its subject, with what it tells of them. */
const change = {
  parts: ['server', 'handle'],
  undoableBy: ['did:key:zOne', 'did:key:zTwo'],
  undoableUntil: AT,
} as unknown as bodies.EventDetails['change']
const events: Readonly<Record<string, [event: ListedEvent, details?: bodies.EventDetails]>> = {
  handleChangedSubject: ['handleChanged', { handle: 'new.test' }],
  handleRemovedSubject: ['handleRemoved', { handle: 'old.test' }],
  emailChangedSubject: ['emailChanged'],
  passwordChangedSubject: ['passwordChanged'],
  passwordResetSubject: ['passwordReset'],
  emailFactorOnSubject: ['emailFactorOn'],
  emailFactorOffSubject: ['emailFactorOff'],
  totpAddedSubject: ['totpAdded'],
  totpRemovedSubject: ['totpRemoved'],
  passkeyAddedSubject: ['passkeyAdded'],
  passkeyRemovedSubject: ['passkeyRemoved'],
  passkeyCopiedSubject: ['passkeyCopied'],
  factorsResetSubject: ['factorsReset', { actor: 'operator' }],
  recoveryCodesMadeSubject: ['recoveryCodesMade'],
  recoveryCodeUsedSubject: ['recoveryCodeUsed'],
  factorBlockedSubject: ['factorBlocked'],
  appPasswordMadeSubject: ['appPasswordMade', { name: HOSTILE }],
  changedElsewhereSubject: ['identityChangedElsewhere', { change }],
  ownKeyAddedSubject: ['ownKeyAdded'],
  ownKeyInDoubtSubject: ['ownKeyInDoubt'],
  hostingBegunSubject: ['hostingBegun'],
  documentEditedSubject: ['documentEdited'],
  signingKeyReplacedSubject: ['signingKeyReplaced'],
  transferAcceptedSubject: ['transferAccepted'],
  transferCompletedSubject: ['transferCompleted'],
  agentAsksSubject: ['agentAsks', { issuer: 'https://issuer.example' }],
  agentConfirmedSubject: ['agentConfirmed', { name: HOSTILE }],
  agentEndedSubject: ['agentEndedByOperator', { name: HOSTILE, actor: 'operator' }],
  agentRefusedSubject: ['agentRefused'],
  delegationOfferedSubject: ['delegationOffered', { name: HOSTILE }],
  delegateAcceptedSubject: ['delegateAccepted', { name: HOSTILE }],
  delegationEndedSubject: ['delegationEndedByOperator', { actor: 'operator' }],
  deletionScheduledSubject: ['deletionScheduled', { deleteAfter: AT }],
  shareRotatedSubject: ['shareRotated'],
  shareDeletedSubject: ['shareDeleted'],
  releaseOpenedSubject: ['releaseOpened', { collectableAt: AT }],
  shareReleasedSubject: ['shareReleased'],
}

const wordsIn = async (table: object, language: Language): Promise<EnglishTexts> => {
  const { english, loaders } = contentsOf(table)!
  return language === 'en' ? english : loaders[language]()
}
const subjectsOf = (table: object): string[] =>
  Object.keys(contentsOf(table)!.english).filter((name) => name.endsWith('Subject'))

/** What arrived for a person, decoded, with its links and header checked. */
async function mailsTo({ email }: Pick<TestAccount, 'email'>, count: number) {
  const { pds, box } = world
  const found = () => box.received.filter(({ to }) => to.includes(email))
  await until(async () => {
    await pds.runSteps()
    return found().length >= count
  })
  expect(found().length).toBe(count)
  return found().map(({ source, to }) => {
    expect(to).toEqual([email])
    const mail = readMail(source)
    expect(mail.headers.filter((line) => /^(to|cc|bcc):/i.test(line))).toEqual([`To: ${email}`])
    expect(source).not.toMatch(/\P{ASCII}/u)
    expect(source.split('\r\n').filter((line) => line.length > 76 && !/^(\S+: )?\S+$/.test(line))).toEqual([])
    expect(mail.subject + mail.text).not.toMatch(/[{}]|undefined|\[object|<\/|\bNaN\b/)
    expect(mail.text).not.toMatch(DECEPTIVE)
    expect(mail.text.split('\n').filter((line) => /^Bcc/i.test(line) || line.length > 800)).toEqual([])
    const links = [...mail.text.matchAll(/https?:\/\/[\w.:-]+/g)].map(([link]) => link)
    expect(links.filter((link) => ![pds.url, FORMER, 'https://issuer.example'].includes(link))).toEqual([])
    return mail
  })
}

/** Returns the mail with the subject of this name. */
async function withSubject(
  mails: readonly { subject: string; text: string }[],
  [table, language, name]: [object, Language, string],
  values: Record<string, string> = {},
) {
  const words = String((await wordsIn(table, language))[name]).replaceAll(
    /\{(\w+)\}/g,
    (_all, key) => values[key] ?? '',
  )
  const found = mails.filter(({ subject }) => subject.startsWith(words))
  expect([name, found.length > 0]).toEqual([name, true])
  return found
}

test('each subject of a notice belongs to an event here', () => {
  expect([...Object.keys(events), 'signInSubject'].toSorted()).toEqual(subjectsOf(noticeTexts).toSorted())
})

test.each(languages)('notices about events in %s', async (language) => {
  const { pds } = world
  const { ctx } = pds
  const person = await createAccount(pds, `notified-${language.toLowerCase()}`, {}, { 'accept-language': language })
  const did = person.did as Did
  await person.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  const [{ text: asked } = { text: '' }] = await mailsTo(person, 1)
  const [token] = /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.exec(asked)!
  const confirm = { json: { email: person.email, token } }
  expect(await person.call('com.atproto.server.confirmEmail', confirm)).toMatchObject({ status: 200 })
  const signIn = { identifier: person.handle, password: PASSWORD }
  await request(`${pds.url}/xrpc/com.atproto.server.createSession`, {
    json: signIn,
    headers: { 'user-agent': 'Curious/1.0', origin: 'https://xn--e1awd7f.example' },
  })
  await ctx.background.settled()
  for (const [event, details] of Object.values(events))
    await ctx.db.transaction((tx) =>
      announceIn(tx, { ctx }, event, did, {
        ...details,
        origin: { openedAt: AT, openedWith: 'Firefox on Linux', openedFrom: '192.0.2.0/24' },
      }),
    )

  const mails = (await mailsTo(person, 2 + Object.keys(events).length)).slice(1)
  const host = new URL(pds.url).host
  const [english, words] = [await wordsIn(mailTexts, 'en'), await wordsIn(mailTexts, language)]
  for (const name of subjectsOf(noticeTexts)) {
    const found = await withSubject(mails, [noticeTexts, language, name])
    expect(found.map(({ subject }) => subject.endsWith(`(${host})`) || subject.endsWith(`（${host}）`))).toEqual([true])
  }
  const about = (texts: EnglishTexts) =>
    String(texts['about']).replace('{account}', person.handle).replace('{host}', host)
  for (const { text } of mails) {
    expect(text).toStartWith(about(words))
    if (language !== 'en') expect(text).not.toContain(String(english['byOperator']))
    expect(text).toMatch(/UTC/)
  }
})

test.each(languages)('all other mails in %s', async (language) => {
  const { pds } = world
  const { ctx } = pds
  const email = `other-${language.toLowerCase()}@example.com`
  const to = {
    did: 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did,
    handle: null,
    email,
    emailConfirmedAt: AT,
    hasPassword: true,
    language,
  } as unknown as Parameters<typeof bodies.addressWantedMail>[1]
  const told = { at: AT, origin: { openedAt: AT, openedWith: null, openedFrom: null } }
  const code = 'ABCDE-F2345'
  const purposes = [
    'confirm_email',
    'update_email',
    'reset_password',
    'delete_account',
    'plc_operation',
    'sign_in',
  ] as const
  const renamed = { config: { ...ctx.config, formerUrls: [FORMER] } }
  const link = `${pds.url}/account/appeal?code=abc`
  const decision = { caseSeq: 12, done: decisionTexts.takenDown, subject: to.did, reason: 'It is spam.' }
  const withPassword = { ...to, hasPassword: false }
  const ordered = await Promise.all([
    ...[to, withPassword].flatMap((one) => purposes.map((purpose) => bodies.codeMail(ctx, one, purpose, code, told))),
    bodies.recoveryCodeMail(ctx, to, code, told),
    bodies.archiveReadyMail(ctx, to, 123_456_789),
    bodies.hostRenamedMail(renamed, to, { isPlc: true }),
    bodies.hostRenamedMail(renamed, to, { isPlc: false }),
    bodies.quotaMail(ctx, to, { what: 'records', used: 1, quota: 12_345 }),
    bodies.quotaMail(ctx, to, { what: 'blobs', used: 9_000_000, quota: 10_000_000 }),
    bodies.decisionMail(ctx, to, { ...decision, appeal: { url: link, until: AT } }),
    bodies.decisionMail(ctx, to, { ...decision, done: decisionTexts.upheld, appeal: null }),
    bodies.invitedMail(ctx, { email, language }, code),
    bodies.invitedMail(ctx, { email, language }, null),
    bodies.addressWantedMail(ctx, to),
    bodies.addressWantedMail(ctx, withPassword),
  ])
  for (const mail of ordered) await ctx.mailer.send(mail, crypto.randomUUID())

  const mails = await mailsTo({ email }, ordered.length)
  expect(mails).toEqual(ordered.map(({ subject, text }) => expect.objectContaining({ subject, text })))
  const host = new URL(pds.url).host
  const percent = new Intl.NumberFormat(language, { style: 'percent' })
  for (const name of subjectsOf(mailTexts)) {
    const values = { host, seq: '12', percent: percent.format(name === 'quotaSubject' ? 0.9 : 0) }
    const found = await withSubject(mails, [mailTexts, language, name], values)
    for (const { text } of found)
      expect(text.includes(code) || text.includes(pds.url) || text.includes('12')).toBe(true)
  }
  expect(mails.filter(({ text }) => /^ABCDE-F2345$/m.test(text))).toHaveLength(2 * purposes.length + 2)
  expect(mails.filter(({ text }) => text.split('\n').includes(link))).toHaveLength(1)
})
