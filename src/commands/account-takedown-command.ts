import { changeTakedown } from './change-takedown.ts'
import { operated } from './operated.ts'
import { NAMED_BY } from './operator-accounts.ts'

export const accountTakedownCommand = operated({
  name: 'account takedown',
  summary: 'Take an account down: it becomes invisible, and all its sessions end.',
  parameters: ['<account>'],
  details: `${NAMED_BY} Nothing is deleted; "account restore" lifts the takedown.`,
  options: { ref: { value: 'TEXT', doc: 'Reference to store with the takedown; the current time if omitted.' } },
  run: ({ server, positionals: [name = ''], options: { ref } }) =>
    changeTakedown(server, name, { applied: true, ...(typeof ref === 'string' ? { ref } : {}) }),
})
