#!/usr/bin/env bun
import { runCommand } from './cli.ts'
import { exitCodes } from './commands/command.ts'
import { processTerminal } from './commands/process-terminal.ts'
import { keepFreedMemory } from './platform/running/freed-memory.ts'
import { isCompiled } from './platform/running/self.ts'

/** The commands that run until they are stopped. */
const servers = ['serve', 'dev', 'follow']

// Every file that the program writes is private: databases, keys, backups. SQLite itself sets no file mode.
process.umask(0o077)

// The runtime has applied these options already. Refuse to run, so that no deployment comes to rely on them.
if (isCompiled && process.env.BUN_OPTIONS !== undefined) {
  process.stderr.write(
    'holdfast: BUN_OPTIONS is set: it changes how the program runs, which has its own configuration. Please unset it.\n',
  )
  process.exit(exitCodes.misused)
}

/** How long the last lines of a server may wait for a reader of its log that has stopped reading. */
const LAST_LINES_MILLIS = 3000

const words = process.argv.slice(2)
const isServer = servers.includes(words[0] ?? '')
const terminal = processTerminal({ outputIsLog: isServer })
if (isServer)
  keepFreedMemory(words, (error) =>
    terminal.err(`warning: the server is slower because it could not set an option of its allocator: ${error}`),
  )

const status = await runCommand(terminal, words)
if (status !== exitCodes.ok) process.exitCode = status
if (isServer) setTimeout(() => process.exit(), LAST_LINES_MILLIS).unref()
