/** Texts about devices that are notified by pushes. */
import { textTable } from '../../../http/texts.ts'

export const pushTexts = textTable(
  {
    title: 'Notifications',
    lead: 'Devices that are notified when an app or a program requests access to your account. Messages are encrypted for the device. A device that you remove gets none until its wallet registers it again.',
    none: 'No device is registered.',
    since: 'Since {day}',
    sincePushed: 'Since {day}, last notified {pushed}',
    device: 'Device {id}',
    remove: 'Remove',
    removeDevice: 'Remove the device {id} of {name}',
  },
  {
    de: async () => (await import('./push-texts-de.ts')).pushGerman,
    es: async () => (await import('./push-texts-es.ts')).pushSpanish,
    fr: async () => (await import('./push-texts-fr.ts')).pushFrench,
    ja: async () => (await import('./push-texts-ja.ts')).pushJapanese,
    'pt-BR': async () => (await import('./push-texts-pt.ts')).pushBrazilian,
  },
)
