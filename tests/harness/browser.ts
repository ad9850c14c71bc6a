/**
 * A headless Chromium. The one that `CHROMIUM_PATH` names, else one of the system, else the one of the package, which
 * brings the libraries it needs. A machine where none of them starts fails the tests.
 */
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

const SYSTEM_PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const ARGUMENTS = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']

export async function openBrowser(): Promise<Browser> {
  const path = process.env.CHROMIUM_PATH ?? SYSTEM_PATHS.find((candidate) => existsSync(candidate))
  if (path !== undefined) return chromium.launch({ executablePath: path, args: ARGUMENTS })
  const { default: packaged, inflate } = await import('@sparticuz/chromium')
  const executablePath = await packaged.executablePath()
  const archives = join(dirname(new URL(import.meta.resolve('@sparticuz/chromium')).pathname), '..', 'bin')
  await inflate(join(archives, 'al2023.tar.br'))
  return chromium.launch({ executablePath, args: packaged.args, env: { ...process.env, LD_LIBRARY_PATH: join(tmpdir(), 'al2023', 'lib') } as Record<string, string> })
}

export const PHONE = { width: 375, height: 812 }
export const DESKTOP = { width: 1280, height: 900 }

/** A page in a browser of its own: no cookies of others, no scripts unless asked for. */
export async function freshPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: PHONE, javaScriptEnabled: false, ...options })
  return context.newPage()
}
