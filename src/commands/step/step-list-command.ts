import { adminCommand } from '../admin-command.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'
import { requireKind } from './step-choice.ts'

interface StepKindView {
  kind: string
  waiting: number
  failed: number
  oldestAt: string | null
  nextAt: string | null
  lastError: string | null
}

interface StepView {
  id: string
  kind: string
  key: string
  status: 'waiting' | 'failed'
  createdAt: string
  dueAt: string | null
  tries: number
  lastError: string | null
}

const NONE = '-'

export const stepListCommand = adminCommand({
  summary: 'List pending and failed durable steps, such as mail.',
  parameters: ['[kind]'],
  details: 'Without a kind, counts the steps of each kind. With a kind, lists its steps, oldest first.',
  async run({ server, positionals: [kind] }) {
    if (kind === undefined) {
      const { kinds } = await server.get<{ kinds: StepKindView[] }>('/v1/admin/steps', { limit: 1 })
      const rows = kinds.map((one) => [
        one.kind,
        String(one.waiting),
        String(one.failed),
        minute(one.oldestAt) ?? NONE,
        minute(one.nextAt) ?? NONE,
        one.lastError ?? '',
      ])
      return { value: kinds, text: table(['KIND', 'WAITING', 'FAILED', 'OLDEST', 'NEXT TRY', 'LAST ERROR'], rows) }
    }
    await requireKind(server, kind)
    const steps = await pages<StepView>(server, '/v1/admin/steps', 'steps', { kind })
    const rows = steps.map((step) => [
      step.id,
      step.key,
      step.status,
      minute(step.createdAt)!,
      String(step.tries),
      minute(step.dueAt) ?? NONE,
      step.lastError ?? '',
    ])
    return { value: steps, text: table(['ID', 'ABOUT', 'STATUS', 'CREATED', 'TRIES', 'NEXT TRY', 'LAST ERROR'], rows) }
  },
})
