/** What forms of the rooms about cases and sign-ups do. */
import { DAY_SECS } from '../../../base/durations.ts'
import type { ConsoleAct } from './console-act.ts'
import { consoleTexts as texts } from './console-texts.ts'

/** The endpoint of a case. An invalid number leads to no other endpoint. */
export const casePath = (id: string): string => `/v1/admin/cases/${/^\d{1,15}$/.test(id) ? id : 'none'}`
const ofCase = (act: string) => (form: URLSearchParams) => `${casePath(form.get('id') ?? '')}/${act}`
const text = (form: URLSearchParams, name: string) => form.get(name)?.trim() ?? ''

export const caseActs: Readonly<Record<string, ConsoleAct>> = {
  'case-open': {
    hasOwnReason: true,
    path: () => '/v1/admin/cases',
    json: (form) => ({ subject: text(form, 'subject'), reason: text(form, 'why') }),
    done: texts.caseOpen,
  },
  'case-note': {
    hasOwnReason: true,
    path: ofCase('notes'),
    json: (form) => ({ text: text(form, 'note') }),
    done: texts.noteAdded,
  },
  'case-deadline': {
    path: ofCase('deadline'),
    json: (form) => ({ inSecs: Math.round(Number(text(form, 'days')) * DAY_SECS) }),
    done: texts.deadlineMoved,
  },
  'case-decide': {
    hasOwnReason: true,
    path: ofCase('decision'),
    json: (form) => ({ act: text(form, 'decision'), reason: text(form, 'why') }),
    done: texts.caseDecided,
  },
  'case-answer': {
    hasOwnReason: true,
    path: ofCase('answer'),
    json: (form) => ({ outcome: text(form, 'outcome'), reason: text(form, 'why') }),
    done: texts.appealAnswered,
  },
  'blob-quarantine': {
    path: () => '/v1/admin/blobs/quarantine',
    json: (form) => ({
      did: text(form, 'did'),
      cid: text(form, 'cid'),
      secs: Math.round(Number(text(form, 'days')) * DAY_SECS),
      atEnd: text(form, 'end'),
    }),
    done: texts.quarantined,
  },
  'blob-release': {
    path: () => '/v1/admin/blobs/release',
    json: (form) => ({ did: text(form, 'did'), cid: text(form, 'cid') }),
    done: texts.released,
  },
  'undo-sign-ups': {
    path: () => '/v1/admin/sign-ups/undo',
    json: (form) => ({
      from: text(form, 'from'),
      until: text(form, 'until'),
      act: text(form, 'undoing'),
      dids: [...form].filter(([name]) => /^did-\d+$/.test(name)).map(([, did]) => did),
    }),
    done: texts.undone,
  },
}
