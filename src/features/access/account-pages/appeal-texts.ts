/** Texts of the page on which account holders appeal against a decision of moderators. */
import { textTable } from '../../../http/texts.ts'

export const appealTexts = textTable(
  {
    title: 'A decision about your account',
    lead: 'Please open this page with the link in the mail about the decision.',
    caseNumber: 'Case',
    concerns: 'Concerns',
    decidedOn: 'Decided on',
    decision: 'Decision',
    reason: 'Reason',
    yourAnswer: 'Your appeal',
    outcome: 'Outcome',
    theirAnswer: 'Answer of the moderators',
    answerUntil: 'If you think that this is wrong, you can appeal once, until {day}.',
    waits: 'Your appeal was sent. We will email you once it has been read.',
    tooLate: 'The time to appeal is over.',
    isFinal: 'Your appeal was read, and this is final.',
    whyWrong: 'Why is this wrong?',
    send: 'Send appeal',
    unknownCode: 'This link does not belong to a decision. Please open the complete link from the mail.',
    emptyAnswer: 'Please write why you think that this is wrong.',
    closed: 'This decision was appealed before, or the time to appeal is over.',
    toAccount: 'To your account',
  },
  {
    de: async () => (await import('./appeal-texts-de.ts')).appealGerman,
    es: async () => (await import('./appeal-texts-es.ts')).appealSpanish,
    fr: async () => (await import('./appeal-texts-fr.ts')).appealFrench,
    ja: async () => (await import('./appeal-texts-ja.ts')).appealJapanese,
    'pt-BR': async () => (await import('./appeal-texts-pt.ts')).appealBrazilian,
  },
)
