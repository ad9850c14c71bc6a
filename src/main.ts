#!/usr/bin/env bun
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { runCommand } from './cli.ts'
import type { Terminal } from './commands/command.ts'

const isCompiled = import.meta.path.startsWith('/$bunfs/') || import.meta.path.includes('~BUN')

const terminal: Terminal = {
  env: process.env,
  readFile(path) {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  },
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  self: isCompiled ? basename(process.execPath) : 'npx bun src/main.ts',
}

process.exitCode = await runCommand(terminal, process.argv.slice(2))
