import { changeTakedown } from './change-takedown.ts'
import { adminCommand } from '../admin-command.ts'
import { NAMED_BY } from './operator-accounts.ts'

export const accountRestoreCommand = adminCommand({
  summary: 'Lift the takedown of an account.',
  parameters: ['<account>'],
  details: NAMED_BY,
  run: ({ server, positionals: [name = ''] }) => changeTakedown(server, name, { applied: false }),
})
