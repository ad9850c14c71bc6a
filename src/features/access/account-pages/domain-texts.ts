/** Texts of the page for a domain of the account holder's own. */
import { textTable } from '../../../http/texts.ts'

export const domainTexts = textTable(
  {
    title: 'Your own domain',
    heading: 'Use @{handle}',
    lead: 'To prove that you control this domain, publish <strong>one</strong> of the two below, then check.',
    record: 'A DNS record',
    recordLead:
      'Add this record where you manage the domain. Some providers expect the name without the domain, such as <code>_atproto</code>.',
    name: 'Name',
    type: 'Type',
    value: 'Value',
    file: 'Or a file on its website',
    fileLead: 'Plain text, with this one line.',
    address: 'Address',
    content: 'Content',
    check: 'Check and change my handle',
    checkMeans:
      'Each check looks up the domain again. If it finds the record or the file, your handle changes from {from} to @{to} at once.',
    back: 'Back to your account',
    checkedAt: 'Checked at {time}:',
    recordMissing:
      '<strong>DNS record:</strong> not found. A new record can take some minutes to become visible everywhere.',
    recordRight: '<strong>DNS record:</strong> found and correct.',
    recordOther: '<strong>DNS record:</strong> found, but it names another account, <code>{did}</code>.',
    fileMissing: '<strong>File:</strong> not found. It must be reachable over https without signing in.',
    fileRight: '<strong>File:</strong> found and correct.',
    fileOther: '<strong>File:</strong> found, but it names another account, <code>{did}</code>.',
    recordFirst: 'The record takes precedence over the file. Correct it or remove it.',
  },
  {
    de: async () => (await import('./domain-texts-de.ts')).domainGerman,
    es: async () => (await import('./domain-texts-es.ts')).domainSpanish,
    fr: async () => (await import('./domain-texts-fr.ts')).domainFrench,
    ja: async () => (await import('./domain-texts-ja.ts')).domainJapanese,
    'pt-BR': async () => (await import('./domain-texts-pt.ts')).domainBrazilian,
  },
)
