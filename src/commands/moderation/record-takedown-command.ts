import { recordCommand } from './subject-takedown.ts'

export const recordTakedownCommand = recordCommand({
  change: 'takedown',
  summary: 'Take a record down, so that only its holder can read it.',
  details: 'Nothing is deleted. "record restore" lifts the takedown.',
})
