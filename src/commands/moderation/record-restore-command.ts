import { recordCommand } from './subject-takedown.ts'

export const recordRestoreCommand = recordCommand({
  change: 'restore',
  summary: 'Lift the takedown of a record.',
  details: '',
})
