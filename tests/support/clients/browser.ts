/**
 * A headless Chromium: the one that `CHROMIUM_PATH` names, else the one of the package, which brings the libraries it
 * needs, else one of the system. A machine where none starts fails the tests.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import packaged, { inflate } from '@sparticuz/chromium'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { locked } from '../locked.ts'

const SYSTEM_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
/** No GPU is imitated, and no process of its own waits for one. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-software-rasterizer',
  '--in-process-gpu',
]

let launched: Promise<Browser> | null = null

/** Launched once in a process, with which it ends. To close it closes the pages that were opened in it. */
export const openBrowser = (): Promise<Browser> => (launched ??= launchShared())

async function launchShared(): Promise<Browser> {
  const browser = await launch()
  return Object.assign(browser, {
    async close() {
      const kept = new Set(idle.map((page) => page.context()))
      await Promise.all(browser.contexts().map((context) => (kept.has(context) ? null : context.close())))
    },
  })
}

async function launch(): Promise<Browser> {
  if (process.env.CHROMIUM_PATH) return chromium.launch({ executablePath: process.env.CHROMIUM_PATH, args: ARGUMENTS })
  if (process.platform === 'linux' && process.arch === 'x64') return openPackaged()
  const executablePath = SYSTEM_PATHS.find((path) => existsSync(path))
  if (executablePath === undefined)
    throw new Error('these tests need a Chromium: install one, or name it in CHROMIUM_PATH')
  return chromium.launch({ executablePath, args: ARGUMENTS })
}

/** Unpacked into the temporary folder at first use, by one process while the others wait. */
async function openPackaged(): Promise<Browser> {
  const archives = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '..', 'bin')
  const folder = join(tmpdir(), 'holdfast-chromium')
  mkdirSync(folder, { recursive: true })
  const [executablePath, libraries] = await locked(folder, async () => [
    await packaged.executablePath(),
    await inflate(join(archives, 'al2023.tar.br')),
  ])
  const env: Record<string, string | undefined> = { ...process.env, LD_LIBRARY_PATH: join(libraries, 'lib') }
  return chromium.launch({ executablePath, args: ARGUMENTS, env: env as Record<string, string> })
}

export const PHONE = { width: 375, height: 812 }
export const DESKTOP = { width: 1280, height: 900 }

/** Pages that were given back. A process and a profile for another one cost ten times what it takes to empty one. */
const idle: Page[] = []
/** Pages that can be emptied: without options, and so without scripts that could keep anything. */
const plain = new WeakSet<Page>()

/** A page in a browser of its own: no cookies of others, no scripts unless asked for. */
export async function freshPage(
  browser: Browser,
  { viewport = PHONE, ...options }: BrowserContextOptions = {},
): Promise<Page> {
  const isPlain = Object.keys(options).length === 0
  const kept = isPlain ? idle.pop() : undefined
  if (kept !== undefined) {
    if (viewport !== null) await kept.setViewportSize(viewport)
    return kept
  }
  const context = await browser.newContext({ viewport, reducedMotion: 'reduce', javaScriptEnabled: false, ...options })
  const page = await context.newPage()
  if (isPlain) plain.add(page)
  return page
}

/** Give a page back: it is emptied for whoever wants one next, or closed with its browser. */
export async function leavePage(page: Page): Promise<void> {
  const context = page.context()
  if (!plain.has(page) || page.isClosed()) return context.close()
  try {
    await empty(page)
    idle.push(page)
  } catch {
    // It has crashed, or has been sent elsewhere by somebody who did not wait.
    await context.close()
  }
}

async function empty(page: Page): Promise<void> {
  const context = page.context()
  for (const other of context.pages()) if (other !== page) await other.close()
  for (const event of ['request', 'requestfinished', 'requestfailed', 'response', 'download', 'dialog'] as const)
    page.removeAllListeners(event)
  // Not by going to an empty page: between that and a page of the server, which isolates itself, processes change.
  await page.evaluate('window.stop()')
  await page.setContent('')
  await Promise.all([
    context.clearCookies(),
    context.setOffline(false),
    page.setExtraHTTPHeaders({}),
    page.emulateMedia({ colorScheme: null }),
  ])
}

/** Sign in to the account page with a password. `stays`: with the box ticked that keeps the session. */
export async function signIn(
  page: Page,
  { url }: { url: string },
  { handle, password }: { handle: string; password: string },
  { stays = false } = {},
): Promise<void> {
  await page.goto(`${url}/account/sign-in`)
  await page.getByLabel('Handle or email address').fill(handle)
  await page.getByLabel('Password', { exact: true }).fill(password)
  if (stays) await page.getByLabel('Stay signed in').check()
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${url}/account`)
}
