#!/usr/bin/env bun
import { runCommand } from './cli.ts'
import { EXIT } from './commands/command.ts'
import { processTerminal } from './commands/process-terminal.ts'

const status = await runCommand(processTerminal(), process.argv.slice(2))
if (status !== EXIT.ok) process.exitCode = status
