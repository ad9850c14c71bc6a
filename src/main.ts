#!/usr/bin/env bun
import { runCommand } from './cli.ts'
import { EXIT } from './commands/command.ts'
import { processTerminal } from './commands/process-terminal.ts'

// What is written here is private: databases, keys, backups. SQLite sets no mode of its own.
process.umask(0o077)

const status = await runCommand(processTerminal(), process.argv.slice(2))
if (status !== EXIT.ok) process.exitCode = status
