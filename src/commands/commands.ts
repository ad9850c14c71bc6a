import { backupCommand } from './backup-command.ts'
import type { Command } from './command.ts'
import { configCheckCommand } from './config-check-command.ts'
import { devCommand } from './dev-command.ts'
import { doctorCommand } from './doctor-command.ts'
import { firehoseCommand } from './firehose-command.ts'
import { mailTestCommand } from './mail-test-command.ts'
import { restoreCommand } from './restore-command.ts'
import { rewrapCommand } from './rewrap-command.ts'
import { serveCommand } from './serve-command.ts'
import { sweepCommand } from './sweep-command.ts'
import { verifyCommand } from './verify-command.ts'
import { versionCommand } from './version-command.ts'

/** Every command, in the order of `holdfast --help`. */
export const commands: readonly Command[] = [
  serveCommand,
  devCommand,
  configCheckCommand,
  doctorCommand,
  mailTestCommand,
  backupCommand,
  restoreCommand,
  verifyCommand,
  sweepCommand,
  rewrapCommand,
  firehoseCommand,
  versionCommand,
]
