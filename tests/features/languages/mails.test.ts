/** In which language a person is mailed, and that codes, names and links are in every translation. */
import { expect, test } from 'bun:test'
import { contentsOf } from '../../../src/http/texts.ts'
import { mailTexts } from '../../../src/features/identity/mails/mail-texts.ts'
import { noticeTexts } from '../../../src/features/identity/account-events/notice-texts.ts'
import { remedyTexts } from '../../../src/features/identity/mails/remedy-texts.ts'
import { languages, type Language } from '../../../src/protocol/languages.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({
  config: { rateLimit: { enabled: false }, waitlist: { enabled: true }, inviteCodeRequired: false },
})

const CODE = /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m
const inLanguage = (language: string) => ({ 'accept-language': language })
let names = 0
const speaker = (language: string | null): Promise<TestAccount> =>
  createAccount(pds, `speaker${++names}`, {}, language === null ? {} : inLanguage(language))

const subjects = {
  'com.atproto.server.requestEmailConfirmation': 'confirmSubject',
  'com.atproto.identity.requestPlcOperationSignature': 'identitySubject',
  'com.atproto.server.requestAccountDelete': 'deleteSubject',
} as const
const wordsIn = async (language: Language, table: object = mailTexts): Promise<Record<string, unknown>> => {
  const { english, loaders } = contentsOf(table)!
  return language === 'en' ? english : loaders[language]()
}

/** The last mail to the person that has this in its subject. */
async function mailTo({ email }: Pick<TestAccount, 'email'>, subject: string) {
  const found = () => pds.mails.findLast((mail) => mail.to === email && mail.subject.includes(subject))
  await until(() => found() !== undefined)
  return found()!
}
async function subjectOfCode(person: TestAccount): Promise<string> {
  const before = pds.mails.length
  await person.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  await until(() => pds.mails.slice(before).some(({ to }) => to === person.email))
  return pds.mails.findLast(({ to }) => to === person.email)!.subject
}

test.each(languages)('a person who signs up in %s gets codes in that language', async (language) => {
  const person = await speaker(language)
  const words = await wordsIn(language)
  for (const [method, subject] of Object.entries(subjects)) {
    expect(await person.call(method, { method: 'POST' })).toMatchObject({ status: 200 })
    const { text } = await mailTo(person, words[subject] as string)
    expect(text).toMatch(CODE)
    expect(text).toContain(person.handle)
    expect(text).toContain(`${pds.url}/account`)
    expect(text).not.toMatch(/[{}]|undefined/)
    expect(text.includes('This is about')).toBe(language === 'en')
  }
  await request(`${pds.url}/xrpc/com.atproto.server.requestPasswordReset`, { json: { email: person.email } })
  const { text } = await mailTo(person, words['resetSubject'] as string)
  const [token] = CODE.exec(text)!
  const reset = { token, password: 'another battery staple' }
  expect(await request(`${pds.url}/xrpc/com.atproto.server.resetPassword`, { json: reset })).toMatchObject({
    status: 200,
  })
})

test.each(languages)('a notice about an event in %s', async (language) => {
  const person = await speaker(language)
  const [words, remedies] = [await wordsIn(language, noticeTexts), await wordsIn(language, remedyTexts)]
  const name = 'Reader\r\nBcc: all@example.com'
  const created = await person.call('com.atproto.server.createAppPassword', { json: { name } })
  expect(created).toMatchObject({ status: 200 })
  const { subject, text } = await mailTo(person, words['appPasswordMadeSubject'] as string)
  const { host } = new URL(pds.url)
  expect([`(${host})`, `（${host}）`]).toContain(subject.slice(-host.length - 2))
  expect(text).toContain((words['appPasswordMade'] as string).split(/[.。]/)[1]!.trim())
  expect(text).not.toContain('Reader')
  expect(text).toContain(`- ${(remedies['doAccount'] as string).replace('{page}', `${pds.url}/account`)}`)
  expect(text).not.toMatch(/[{}]|undefined|\[object/)
  expect(text.includes('If this was you')).toBe(language === 'en')
})

test('a person of whom no language is known is mailed in that of the server', async () => {
  for (const language of [null, 'nl']) expect(await subjectOfCode(await speaker(language))).toMatch(/^Confirm your/)
  await using french = await startPds({ pages: { language: 'fr' } })
  const person = await createAccount(french, 'ann')
  await person.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  await lastCode(french, person.email)
  expect(french.mails.at(-1)!.subject).toStartWith('Confirmez votre adresse e-mail (')
})

test('a sign-in on a page tells the language, but replaces none', async () => {
  const [silent, german] = [await speaker(null), await speaker('de')]
  for (const { handle, password } of [silent, german])
    expect(
      await new CookieBrowser(pds).send('/account/sign-in', { identifier: handle, password }, inLanguage('ja')),
    ).toMatchObject({ status: 303 })
  expect(await subjectOfCode(silent)).toStartWith('メールアドレスの確認')
  expect(await subjectOfCode(german)).toStartWith('Bestätige deine E-Mail-Adresse')
})

test('what a person chooses at the foot of a page holds for mails, of accounts that are signed in there', async () => {
  const [person, other] = [await speaker('de'), await speaker('de')]
  const browser = new CookieBrowser(pds)
  await browser.send('/account/sign-in', { identifier: person.handle, password: person.password })
  expect(await browser.send('/language?back=%2Faccount', { language: 'es' })).toMatchObject({ status: 303 })
  expect(await subjectOfCode(person)).toStartWith('Confirma tu dirección de correo')
  expect(await subjectOfCode(other)).toStartWith('Bestätige')
  const elsewhere = { origin: 'https://evil.example' }
  expect(await browser.send('/language?back=%2Faccount', { language: 'fr' }, elsewhere)).toMatchObject({ status: 403 })
  expect(await subjectOfCode(person)).toStartWith('Confirma')
})

test('a person on the waiting list is invited in the language of the request', async () => {
  const email = 'wartet@example.org'
  await request(`${pds.url}/waitlist`, { json: { email }, headers: inLanguage('pt-PT') })
  await request(`${pds.url}/v1/admin/waitlist/invite`, { json: { email }, headers: bearer(ADMIN_TOKEN) })
  const { text } = await mailTo({ email }, 'Sua conta em')
  expect(text).toContain(`${pds.url}/account/sign-up`)
})

test('a mail in another script arrives with its code on a line of its own', async () => {
  await using box = await startMailbox({ tls: 'none' })
  const email = {
    provider: 'smtp',
    from: 'pds@example.org',
    smtpHost: 'localhost',
    smtpPort: box.port,
    smtpTls: 'none',
  }
  await using other = await startPds({ email } as Parameters<typeof startPds>[0], { mailer: undefined })
  const person = await createAccount(other, 'ann', {}, inLanguage('ja'))
  await person.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  const [head = '', body = ''] = box.received[0]!.source.split(/\r\n\r\n([^]*)/)
  expect(head).toMatch(/^Content-Transfer-Encoding: base64\r?$/m)
  const text = Buffer.from(body, 'base64').toString()
  expect(text).toContain('次のコード')
  const [token] = CODE.exec(text.replaceAll('\r\n', '\n'))!
  expect(await person.call('com.atproto.server.confirmEmail', { json: { email: person.email, token } })).toMatchObject({
    status: 200,
  })
})
