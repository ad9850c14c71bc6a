/** What operators change about pages: colours, which follow the rules of the stylesheet, and the logo. */
import { createHash } from 'node:crypto'
import { OperatorError } from '../base/operator-error.ts'
import type { Config } from '../platform/configuration/config.ts'
import { perContext, type Context } from '../platform/context.ts'
import { WholeResponse } from './encoding.ts'
import { route, type Endpoint } from './endpoint.ts'
import { notFound } from './errors.ts'
import style from './style.css' with { type: 'text' }

/** Without indentation. */
const served = style.replaceAll(/^ +/gm, '')

const STYLE_PATH = '/assets/style.css'
export const LOGO_PATH = '/assets/logo'
const MAX_LOGO_BYTES = 100 * 1024

interface Sheet {
  /** Path and version. */
  url: string
  text: string
}

const sheets = new WeakMap<Config, Sheet>()

/** The one stylesheet of the pages, in the colours of the operator. */
function sheetOf(config: Config): Sheet {
  const known = sheets.get(config)
  if (known) return known
  const { accentColor, accentColorDark } = config.brand
  const accents = [
    ...(accentColor === null ? [] : [`--accent-light:${accentColor}`]),
    ...(accentColorDark === null ? [] : [`--accent-dark:${accentColorDark}`]),
  ]
  const text = accents.length === 0 ? served : `${served}:root{${accents.join(';')}}\n`
  const sheet = { url: `${STYLE_PATH}?v=${createHash('sha256').update(text).digest('hex').slice(0, 16)}`, text }
  sheets.set(config, sheet)
  return sheet
}

export const stylesheetUrl = (config: Config): string => sheetOf(config).url

interface Logo {
  contentType: string
  bytes: Uint8Array<ArrayBuffer>
}

const logoOf = perContext<{ logo: Logo | null }>(() => ({ logo: null }))

/** Pictures that hold no scripts, by their first bytes. */
const pictureTypes: readonly [contentType: string, pattern: RegExp][] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/webp', /^52494646.{8}57454250/],
]

/** Reads the logo. Throws an `OperatorError` if there is none at its path, or it is too large or no picture. */
export async function prepareLogo(ctx: Context): Promise<void> {
  const path = ctx.config.brand.logoFile
  if (path === null) return
  const file = Bun.file(path)
  if (!(await file.exists())) throw new OperatorError(`brand.logo_file: there is no file at ${path}`)
  if (file.size > MAX_LOGO_BYTES)
    throw new OperatorError(`brand.logo_file: ${path} has more than ${MAX_LOGO_BYTES} bytes`)
  const bytes = await file.bytes()
  const start = Buffer.from(bytes.subarray(0, 12)).toString('hex')
  const type = pictureTypes.find(([, pattern]) => pattern.test(start))
  if (!type) throw new OperatorError(`brand.logo_file: ${path} is not a PNG, JPEG or WebP image`)
  logoOf(ctx).logo = { contentType: type[0], bytes }
}

export const brandRoutes: readonly Endpoint[] = [
  route('GET', STYLE_PATH, {
    handler: ({ ctx }) =>
      new WholeResponse(sheetOf(ctx.config).text, {
        headers: {
          'Content-Type': 'text/css; charset=utf-8',
          'Cache-Control': 'public, max-age=31536000, immutable',
        },
      }),
  }),
  route('GET', LOGO_PATH, {
    handler({ ctx }) {
      const { logo } = logoOf(ctx)
      if (logo === null) throw notFound()
      return new Response(logo.bytes, {
        headers: { 'Content-Type': logo.contentType, 'Cache-Control': 'public, max-age=3600' },
      })
    },
  }),
]
