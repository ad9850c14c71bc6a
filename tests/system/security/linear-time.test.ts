/**
 * A pattern that tries each character in more than one way can be made to take for ever by somebody who chooses the
 * text. So every pattern of the code is proven to take linear time, and so is every one of the packages that parse what
 * others wrote.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { expect, test } from 'bun:test'
import { countBuiltPatterns, patternsOf, slowOf, type Pattern } from '../../architecture/patterns.ts'
import { sources } from '../../architecture/sources.ts'

/** Patterns with parts that no proof covers, and others that cost at least as much. */
const equals: Readonly<Record<string, string>> = {
  [String.raw`^::ffff:(?=\d+\.\d+\.\d+\.\d+$)`]: String.raw`^::ffff:\d+\.\d+\.\d+\.\d+$`,
  '^0+(?=.)': '^0+.',
  '.{5}(?=.)': '.{6}',
  '(.{4})(?=.)': '.{5}',
  [String.raw`(?<=[a-z\d])(?=[A-Z])|(?<=[a-z])(?=\d+[a-z])`]: String.raw`[a-z\d][A-Z]|[a-z]\d+[a-z]`,
}

/** Patterns that are built from tables, by their file, as they come out; cut short where the rest is alike. */
const built: Readonly<Record<string, string>> = {
  'http/encoding.ts': '-(?:gzip|br|zstd)"$',
  'protocol/user-agent.ts': '(?:^|\\s)((?:Edge|Opera|Samsung Internet)(?: on (?:iPhone|iPad|macOS))?)$',
}

/** Proofs of many patterns take longer than other tests. */
const PROOF_MILLIS = 120_000

const inWords = ({ path, source, flags }: Pattern) => `${path}: /${source}/${flags}`

const shelves = Map.groupBy(sources, ({ path }) => path.split('/')[0]!)

/** To mend one: write it so that each character can be matched in one way only, or count with a loop. */
test.each([...shelves.keys()])(
  'every pattern of %s takes linear time, whatever it reads',
  async (shelf) => {
    const patterns = shelves.get(shelf)!.flatMap(({ path, text }) => patternsOf(path, text))
    const slow = await slowOf(
      patterns.map((pattern) => ({ ...pattern, source: equals[pattern.source] ?? pattern.source })),
    )
    expect(slow.map(inWords)).toEqual([])
  },
  PROOF_MILLIS,
)

test('patterns that are built are listed, and take linear time too', async () => {
  expect(sources.flatMap(({ path, text }) => Array(countBuiltPatterns(path, text)).fill(path))).toEqual(
    Object.keys(built).toSorted(),
  )
  const patterns = Object.values(built).map((source) => ({ source, flags: '', isRepeated: false }))
  expect(await slowOf(patterns)).toEqual([])
})

test('a pattern that is not linear is found', async () => {
  const found = (literal: string) => slowOf(patternsOf('x.ts', `text.replace(${literal}, '')`))
  for (const literal of [
    String.raw`/\/+$/`,
    '/=+$/',
    String.raw`/(a|a)*b/`,
    String.raw`/\s*x/`,
    String.raw`/a+b|a/g`,
    String.raw`/(?:ab?)+$/`,
  ])
    expect([literal, (await found(literal)).length]).toEqual([literal, 1])
  for (const literal of ['/^a+$/', String.raw`/\s+/g`, String.raw`/^\/+/`])
    expect([literal, await found(literal)]).toEqual([literal, []])
})

interface Dependency {
  /**
   * What it reads that others wrote, and how long that can be; null if it reads only what the server or its operator
   * wrote.
   */
  foreign: string | null
  /** Folders with the code that reads it; none if that code is native, or is known to compare no text with patterns. */
  folders?: readonly string[]
  /**
   * Beginnings of patterns that no proof covers, with a pattern that costs as much, or why none of its texts is long.
   */
  patterns?: Readonly<Record<string, { asMuchAs: string } | { because: string }>>
}

const own: Dependency = { foreign: null }
const bounded = (foreign: string): Dependency => ({ foreign })

const root = join(import.meta.dir, '../../..')

/** Every package of the program. */
const dependencies: Readonly<Record<string, Dependency>> = {
  '@atproto/crypto': own, // a second opinion on what this server signed
  '@atproto/repo': own,
  '@rgrove/parse-xml': bounded('listings and errors of a bucket that the operator chose, of at most a mebibyte'),
  otpauth: bounded('codes of six digits; the secret is ours'),
  '@hpke/core': bounded('keys of a fixed length'),
  '@modelcontextprotocol/sdk': bounded('the assistant that starts it'),
  '@noble/ciphers': bounded('a sealed key of a fixed length'),
  '@noble/curves': bounded('points and signatures of a fixed length'),
  '@noble/hashes': bounded('paths and CIDs of records, of at most 889 characters'),
  '@node-rs/argon2': bounded('passwords of at most 512 characters'),
  '@number0/iroh': bounded('frames of a fixed length'),
  '@opentelemetry/api': own,
  '@opentelemetry/exporter-trace-otlp-grpc': own,
  '@opentelemetry/resources': own,
  '@opentelemetry/sdk-trace-base': own,
  'age-encryption': own,
  aws4: own,
  'disposable-email-domains-js': own,
  'prom-client': own,
  'smol-toml': own,
  cborg: own,
  elysia: bounded('paths, which it passes on unread'),
  qr: bounded('the address of a consent, which this server wrote'),
  secp256k1: bounded('points and signatures of a fixed length'),
  '@atproto/oauth-scopes': {
    foreign: 'scopes of at most 8192 characters, which cost it up to their square; permission sets of at most 64 KiB',
    folders: ['dist'],
  },
  '@atproto/oauth-types': {
    foreign: 'client metadata of at most 64 KiB; client ids and redirect URIs of at most 32 KiB',
    folders: ['dist', '../did/dist', '../jwk/dist', '../../zod/v3'],
    patterns: {
      [String.raw`^(?!\.)(?!.*\.\.)([A-Z0-9_'+\-\.]*)`]: {
        asMuchAs: String.raw`^(?:.*\.\.|([A-Z0-9_'+\-\.]*)[A-Z0-9_+-]@([A-Z0-9][A-Z0-9\-]*\.)+[A-Z]{2,}$)`,
      },
      [String.raw`^[-+]?P(?!$)`]: { because: 'client metadata has no durations' },
      [String.raw`^(([0-9a-fA-F]{1,4}:){7,7}`]: { because: 'client metadata has no bare addresses' },
    },
  },
  '@atproto/syntax': {
    foreign: 'texts of records and parameters; each format but languages and URIs has its own maximum',
    folders: ['dist'],
    patterns: {
      '^((?<grandfathered>': {
        // Without the fixed words, and with repetitions that have no maximum.
        asMuchAs: [
          '^(([A-Za-z]{2,3}(-([A-Za-z]{3}(-[A-Za-z]{3}){0,2}))?|[A-Za-z]{4,})(-[A-Za-z]{4})?(-[A-Za-z]{2}|-[0-9]{3})?',
          '(-([A-Za-z0-9]{5,}|[0-9][A-Za-z0-9]{3}))*(-([0-9A-WY-Za-wy-z](-[A-Za-z0-9]{2,})+))*(-([xX](-[A-Za-z0-9]+)+))?)$',
        ].join(''),
      },
    },
  },
  '@simplewebauthn/server': {
    foreign: 'what authenticators answer, in JSON bodies of 150 KiB at most',
    folders: ['esm'],
  },
  '@sinclair/typebox': {
    foreign: 'JSON bodies, of 150 KiB where nothing less is declared',
    folders: ['build/esm/value', 'build/esm/type'],
  },
  '@fastify/busboy': {
    foreign: 'the headers of parts of forms, of at most 4 KiB, and the media type of a form',
    folders: ['lib', 'deps'],
  },
  'file-type': { foreign: 'the first 64 KiB of an upload', folders: ['source', '../strtok3/lib', '../token-types'] },
  jose: {
    foreign: 'tokens, which are headers or parts of bodies of at most 32 KiB; key sets of at most 64 KiB',
    folders: ['dist/webapi'],
    patterns: {
      [String.raw`^(\+|\-)? ?(\d+|\d+\.\d+) ?(seconds?`]: { because: 'the maximum age is a number of the code' },
    },
  },
  yauzl: { foreign: 'directories of archives, with names of at most 64 KiB', folders: ['.'] },
  multiformats: { foreign: 'keys and CIDs of at most 128 characters, as bases cost the square', folders: ['dist/src'] },
  nodemailer: {
    foreign: 'addresses of at most 254 characters; names of at most 80 in the words of a mail',
    folders: ['addressparser', 'base64', 'mime-funcs', 'mime-node', 'qp'].map((name) => `dist/esm/${name}`),
    patterns: {
      [String.raw`(\s+)[^\s]*$`]: { because: 'a header is cut into lines of 76 characters first' },
      [String.raw`^X-SMTPAPI$|^(MIME|DKIM|ARC|BIMI)\b`]: { because: 'names of headers are those of the code' },
    },
  },
}

test('every package of the program is listed with what it reads', () => {
  const { dependencies: needed } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  expect(Object.keys(dependencies).toSorted()).toEqual(Object.keys(needed).toSorted())
})

function patternsIn(name: string, folder: string): Pattern[] {
  const dir = join(root, 'node_modules', name, folder)
  const files = [...new Glob('**/*.{js,mjs}').scanSync(dir)].filter(
    (path) => !/(?:^|\/)(?:tests?|locales)\//.test(path),
  )
  return files.flatMap((path) => patternsOf(`${folder}/${path}`, readFileSync(join(dir, path), 'utf8')))
}

const parsers = Object.entries(dependencies).filter(([, { folders }]) => folders !== undefined)

test.each(parsers)(
  'the patterns of %s take linear time, or short texts',
  async (name, { folders = [], patterns = {} }) => {
    const used = new Set<string>()
    const toBeProven = folders
      .flatMap((folder) => patternsIn(name, folder))
      .flatMap((pattern) => {
        const beginning = Object.keys(patterns).find((one) => pattern.source.startsWith(one))
        if (beginning === undefined) return [pattern]
        used.add(beginning)
        const reason = patterns[beginning]!
        return 'asMuchAs' in reason ? [{ ...pattern, source: reason.asMuchAs }] : []
      })
    expect((await slowOf(toBeProven)).map(inWords)).toEqual([])
    expect([...used].toSorted()).toEqual(Object.keys(patterns).toSorted())
  },
  PROOF_MILLIS,
)
