import { changeTakedown } from './change-takedown.ts'
import { operated } from './operated.ts'
import { NAMED_BY } from './operator-accounts.ts'

export const accountTakedownCommand = operated({
  name: 'account takedown',
  summary: 'Take an account down: nobody sees it, and it is signed out everywhere.',
  parameters: ['<account>'],
  details: `${NAMED_BY} Nothing is deleted; "account restore" lifts it.`,
  options: { ref: { value: 'TEXT', doc: 'What the takedown is remembered by; the time without it.' } },
  run: ({ server, positionals: [name = ''], options: { ref } }) =>
    changeTakedown(server, name, { applied: true, ...(typeof ref === 'string' ? { ref } : {}) }),
})
