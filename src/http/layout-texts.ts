/** Texts of the layout of pages, and of the pages that say why a request was refused. */
import { textTable } from './texts.ts'

export const layoutTexts = textTable(
  {
    terms: 'Terms',
    privacy: 'Privacy',
    contact: 'Contact',
    ourFaultTitle: 'Something went wrong',
    ourFault: 'The fault is on our side. Please try again in a moment.',
    notFoundTitle: 'Page not found',
    notFound: 'There is no page at this address. It may be mistyped, or the link may be old.',
    notOpenable: 'This address is not a page that can be opened.',
    tooLargeTitle: 'Too large',
    tooLarge: 'What you sent is larger than this page accepts. Please go back and shorten it.',
    tooManyTitle: 'Too many attempts',
    wait: { one: 'Please wait a minute, then try again.', other: 'Please wait {count} minutes, then try again.' },
    dependencyDown: 'A service that this page depends on is not responding. Please try again in a moment.',
    refusedTitle: 'This did not work',
    startAgain: 'If an app brought you here, go back to it and start again.',
    backToRequest: 'Back to the request',
    yourAccount: 'Your account',
    aboutServer: 'About this server',
    requestId: 'If you ask the operators for help, tell them this number: {id}',
    imprint: 'Imprint',
  },
  {
    de: async () => (await import('./layout-texts-de.ts')).layoutGerman,
    es: async () => (await import('./layout-texts-es.ts')).layoutSpanish,
    fr: async () => (await import('./layout-texts-fr.ts')).layoutFrench,
    ja: async () => (await import('./layout-texts-ja.ts')).layoutJapanese,
    'pt-BR': async () => (await import('./layout-texts-pt.ts')).layoutBrazilian,
  },
)
