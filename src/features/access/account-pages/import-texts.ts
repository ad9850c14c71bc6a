/** Texts of the page on which people restore their account from an archive. */
import { textTable } from '../../../http/texts.ts'

export const importTexts = textTable(
  {
    title: 'Restore from an archive',
    heading: 'Restore {account} from an archive',
    lead: 'From a ZIP file that this server, or another one of its kind, has exported for this account.',
    refused: 'This server does not accept archives.',
    back: 'Back to your account',
    isReplaced: 'Is replaced',
    replacedRecords:
      'Your posts, likes, follows and all other records: they will be those in the archive. What you have written since the export is lost.',
    replacedPreferences: 'Preferences that the archive has, such as muted words and saved feeds.',
    isAdded: 'Is added',
    addedBlobs: 'Every picture and video in the archive that this server does not have.',
    stays: 'Stays as it is',
    staysAccess: 'Your handle, password, app passwords and sessions, and your followers.',
    sure: 'Replace my posts and other records by those in the archive',
    file: 'The archive',
    fileHint: 'Keep this page open until the upload has ended. If it breaks off, upload the file again.',
    restore: 'Restore my account',
    restored: 'Restored',
    restoredHeading: '{account} is restored',
    restoredWhole: 'The whole archive has been taken over.',
    records: 'Posts and other records',
    recordsReplaced: 'Those in the archive',
    recordsAsBefore: 'As they were: the archive has none',
    blobs: 'Pictures and videos',
    blobsAdded: '{added} added, {present} were here already',
    preferences: 'Preferences',
    preferencesAdded: '{added} from the archive',
    noZip: 'This file is no archive of an account: it is no ZIP file.',
    chooseFile: 'Please choose the file of your archive.',
    confirm: 'Please confirm that your posts are replaced.',
    proceed: 'Continue',
    signedInLongAgo:
      'You signed in more than an hour ago. Continue to confirm that it is you, and then choose the file again.',
  },
  {
    de: async () => (await import('./import-texts-de.ts')).importGerman,
    es: async () => (await import('./import-texts-es.ts')).importSpanish,
    fr: async () => (await import('./import-texts-fr.ts')).importFrench,
    ja: async () => (await import('./import-texts-ja.ts')).importJapanese,
    'pt-BR': async () => (await import('./import-texts-pt.ts')).importBrazilian,
  },
)
