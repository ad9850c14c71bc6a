/** Texts that say to an account holder what a decision did. */
import { textTable } from '../../../http/texts.ts'

export const decisionTexts = textTable(
  {
    warned: 'Nothing was taken down. This is a warning: if it happens again, more may follow.',
    takenDown: 'It was taken down: others can no longer see it. Nothing was deleted.',
    accountTakenDown:
      'The whole account was taken down: others can no longer see it, and it can no longer be used. Nothing was deleted.',
    setAside: 'The file is in quarantine: only moderators can see it until it is reviewed again.',
    upheld: 'Your appeal was read, and the decision is upheld.',
    reversed:
      'Your appeal was right: the decision is reversed, and what it took down is visible again, unless another decision took it down too.',
  },
  {
    de: async () => (await import('./decision-texts-de.ts')).decisionGerman,
    es: async () => (await import('./decision-texts-es.ts')).decisionSpanish,
    fr: async () => (await import('./decision-texts-fr.ts')).decisionFrench,
    ja: async () => (await import('./decision-texts-ja.ts')).decisionJapanese,
    'pt-BR': async () => (await import('./decision-texts-pt.ts')).decisionBrazilian,
  },
)
