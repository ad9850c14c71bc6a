/** What forms of the rooms about cases and sign-ups do. */
import { DAY_SECS } from '../../../base/durations.ts'
import { caseRoomTexts } from './case-texts.ts'
import { textIn, type ConsoleAct } from './console-act.ts'
import { consoleTexts as texts } from './console-texts.ts'

/** The endpoint of a case. An invalid number leads to no other endpoint. */
export const casePath = (id: string): string => `/v1/admin/cases/${/^\d{1,15}$/.test(id) ? id : 'none'}`
const ofCase = (act: string) => (form: URLSearchParams) => `${casePath(form.get('id') ?? '')}/${act}`

export const caseActs: Readonly<Record<string, ConsoleAct>> = {
  'case-open': {
    hasOwnReason: true,
    path: () => '/v1/admin/cases',
    json: (form) => ({ subject: textIn(form, 'subject'), reason: textIn(form, 'why') }),
    done: texts.caseOpen,
  },
  'case-note': {
    hasOwnReason: true,
    path: ofCase('notes'),
    json: (form) => ({ text: textIn(form, 'note') }),
    done: texts.noteAdded,
  },
  'case-deadline': {
    path: ofCase('deadline'),
    json: (form) => ({ inSecs: Math.round(Number(textIn(form, 'days')) * DAY_SECS) }),
    // A field without a visible character must not stand for today.
    faultOf: (form) => (textIn(form, 'days') === '' ? caseRoomTexts.daysFromNow : null),
    done: texts.deadlineMoved,
  },
  'case-decide': {
    hasOwnReason: true,
    path: ofCase('decision'),
    json: (form) => ({ act: textIn(form, 'decision'), reason: textIn(form, 'why') }),
    done: texts.caseDecided,
  },
  'case-answer': {
    hasOwnReason: true,
    path: ofCase('answer'),
    json: (form) => ({ outcome: textIn(form, 'outcome'), reason: textIn(form, 'why') }),
    done: texts.appealAnswered,
  },
  'blob-quarantine': {
    path: () => '/v1/admin/blobs/quarantine',
    json: (form) => ({
      did: textIn(form, 'did'),
      cid: textIn(form, 'cid'),
      secs: Math.round(Number(textIn(form, 'days')) * DAY_SECS),
      atEnd: textIn(form, 'end'),
    }),
    done: texts.quarantined,
  },
  'blob-release': {
    path: () => '/v1/admin/blobs/release',
    json: (form) => ({ did: textIn(form, 'did'), cid: textIn(form, 'cid') }),
    done: texts.released,
  },
  'undo-sign-ups': {
    path: () => '/v1/admin/sign-ups/undo',
    json: (form) => ({
      from: textIn(form, 'from'),
      until: textIn(form, 'until'),
      act: textIn(form, 'undoing'),
      dids: [...form].filter(([name]) => /^did-\d+$/.test(name)).map(([, did]) => did),
    }),
    done: texts.undone,
  },
}
