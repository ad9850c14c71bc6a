import { blobCommand } from './subject-takedown.ts'

export const blobTakedownCommand = blobCommand({
  change: 'takedown',
  summary: 'Take a blob down, so that only its holder can read it.',
  details: 'Nothing is deleted. "blob restore" lifts the takedown.',
})
