/** The choice of a language, which every page offers at its foot. */
import { route } from '../../../http/endpoint.ts'
import { languageCookie } from '../../../http/page-language.ts'
import { languages } from '../../../protocol/languages.ts'
import { hasLongHost } from '../../../protocol/url-host.ts'
import { keepMailLanguage } from '../../identity/mails/mails.ts'
import { pageRefusal, seeOther } from '../page-parts/page-parts.ts'
import { deviceOf, readOwnForm } from './devices.ts'

/** Returns the address of a page of ours, or of the account page if the form's address names another site or none. */
function ownPage(publicUrl: string, given: string | null): string {
  const page = given === null || hasLongHost(given) ? null : URL.parse(given, publicUrl)
  return page !== null && page.origin === new URL(publicUrl).origin ? page.href : `${publicUrl}/account`
}

export const languageRoutes = [
  route('POST', '/language', {
    async handler(call) {
      const { config } = call.ctx
      // At worst, another site can have the pages shown in another language.
      const form = await readOwnForm(call, { needsNoCookie: true })
      const language = languages.find((one) => one === form.get('language'))
      if (language === undefined) throw pageRefusal('There are no pages in this language.')
      // A form of another site comes without the sign-in cookie, so that it cannot choose the language of someone's
      // mails.
      const device = await deviceOf(call)
      if (device !== null)
        await call.ctx.db.transaction(async (tx) => {
          for (const { account } of device.accounts)
            await keepMailLanguage(tx, account.did, language, { isChosen: true })
        })
      call.replyHeaders.append('Set-Cookie', languageCookie(config, language))
      return seeOther(ownPage(config.publicUrl, call.url.searchParams.get('back')))
    },
  }),
]
