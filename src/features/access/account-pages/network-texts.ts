/** Texts of the page on how the network sees an account. */
import { textTable } from '../../../http/texts.ts'

export const networkTexts = textTable(
  {
    title: 'How the network sees you',
    lead: 'Others see your posts if every link below works. They were checked just now.',
    well: 'Everything works.',
    account: 'Your account',
    server: 'This server',
    ok: '{name}: works',
    warning: '{name}: in doubt',
    fault: '{name}: broken',
    unknown: '{name}: unknown',
    toDo: 'What to do: {remedy}.',
    tellOperator: 'What to do: if it stays that way, tell the operator of this server.',
    tellOperatorAt: 'What to do: if it stays that way, tell the operator of this server ({email}).',
    back: 'Back to your account',
  },
  {
    de: async () => (await import('./network-texts-de.ts')).networkGerman,
    es: async () => (await import('./network-texts-es.ts')).networkSpanish,
    fr: async () => (await import('./network-texts-fr.ts')).networkFrench,
    ja: async () => (await import('./network-texts-ja.ts')).networkJapanese,
    'pt-BR': async () => (await import('./network-texts-pt.ts')).networkBrazilian,
  },
)
