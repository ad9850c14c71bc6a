/** The choice of a language, which every page offers at its foot. */
import { route } from '../../../http/endpoint.ts'
import { languageCookie } from '../../../http/page-language.ts'
import { languages } from '../../../protocol/languages.ts'
import { pageRefusal, seeOther } from '../page-parts/page-parts.ts'
import { readOwnForm } from './devices.ts'

/** Returns the address of a page of ours, or of the account page if the form's address names another site or none. */
function ownPage(publicUrl: string, given: string | null): string {
  const page = URL.parse(given ?? '', publicUrl)
  return page !== null && page.origin === new URL(publicUrl).origin ? page.href : `${publicUrl}/account`
}

export const languageRoutes = [
  route('POST', '/language', {
    async handler(call) {
      const { config } = call.ctx
      // Another site can at most have the pages shown in another language.
      const form = await readOwnForm(call, { needsNoCookie: true })
      const language = languages.find((one) => one === form.get('language'))
      if (language === undefined) throw pageRefusal('There are no pages in this language.')
      call.replyHeaders.append('Set-Cookie', languageCookie(config, language))
      return seeOther(ownPage(config.publicUrl, call.url.searchParams.get('back')))
    },
  }),
]
