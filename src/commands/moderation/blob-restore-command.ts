import { blobCommand } from './subject-takedown.ts'

export const blobRestoreCommand = blobCommand({
  change: 'restore',
  summary: 'Lift the takedown of a blob.',
  details: '',
})
