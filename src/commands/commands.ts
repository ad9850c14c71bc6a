import type { Command } from './command.ts'
import { configCheckCommand } from './config-check.ts'
import { devCommand } from './dev.ts'
import { firehoseCommand } from './watch-firehose.ts'
import { serveCommand } from './serve.ts'
import { versionCommand } from './show-version.ts'

/** Every command, in the order of `holdfast --help`. */
export const commands: readonly Command[] = [serveCommand, devCommand, configCheckCommand, firehoseCommand, versionCommand]
