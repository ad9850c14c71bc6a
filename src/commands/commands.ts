import { backupCommand } from './backup.ts'
import type { Command } from './command.ts'
import { configCheckCommand } from './config-check.ts'
import { devCommand } from './dev.ts'
import { doctorCommand } from './doctor.ts'
import { mailTestCommand } from './mail-test.ts'
import { firehoseCommand } from './watch-firehose.ts'
import { rewrapCommand } from './rewrap.ts'
import { restoreCommand } from './restore.ts'
import { serveCommand } from './serve.ts'
import { sweepCommand } from './sweep.ts'
import { versionCommand } from './show-version.ts'
import { verifyCommand } from './verify.ts'

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
