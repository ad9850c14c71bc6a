/** Walks the pages of a server as somebody who is signed in would: from each page to all that it links. */
import { features } from '../../../src/features.ts'
import type { Answer } from './http.ts'

export interface WalkedPage {
  path: string
  answer: Answer
  /** Empty for a redirect and for a file. */
  text: string
}

/** The pages that need no parameters, by the declarations. Programs call the others. */
export const pagePaths: readonly string[] = features
  .flatMap(({ routes = [] }) => routes)
  .flatMap((endpoint) =>
    'method' in endpoint && endpoint.method === 'GET' && /^\/($|account|admin|agent\/claim$)/.test(endpoint.path)
      ? [endpoint.path]
      : [],
  )

/** Downloads, and what only a script asks. */
const noPages = /^\/(account\/archive($|\?)|assets\/|xrpc\/|v1\/|oauth\/(?!authorize\?))/
const MAX_PAGES = 300

/** Opens these pages and all pages that they link, each once. */
export async function walkPages(
  open: (path: string) => Promise<Answer>,
  starts: readonly string[],
): Promise<WalkedPage[]> {
  const paths = [...starts]
  const walked: WalkedPage[] = []
  for (const path of paths) {
    if (walked.length >= MAX_PAGES) throw new Error(`more pages than ${MAX_PAGES}`)
    const answer = await open(path)
    const target = answer.headers.get('location')
    const isFile = answer.headers.has('content-disposition')
    const isPage = !isFile && (answer.headers.get('content-type')?.startsWith('text/html') ?? false)
    const text = isPage ? String(answer.body) : ''
    walked.push({ path, answer, text })
    const links = target === null ? linksOf(text) : [target.replace(/#.*/, '')]
    for (const link of links) if (!paths.includes(link) && !noPages.test(link)) paths.push(link)
  }
  return walked
}

const unescaped = (text: string): string =>
  text.replaceAll('&quot;', '"').replaceAll('&#x27;', "'").replaceAll('&amp;', '&')

const linksOf = (page: string): string[] =>
  [...page.matchAll(/<a [^>]*href="(\/[^"#]*)/g)].map(([, link]) => unescaped(link!))

export interface WalkedForm {
  page: string
  path: string
  isUpload: boolean
  /** As the page has filled it in. */
  fields: [string, string][]
  buttons: [string, string][]
}

/** The forms of a page that change something. */
export const formsOf = ({ path, text }: WalkedPage): WalkedForm[] =>
  [...text.matchAll(/<form ([^>]*method="post"[^>]*)>([\s\S]*?)<\/form>/g)].map(([, head, content]) => ({
    page: path,
    path: unescaped(/action="([^"]*)"/.exec(head!)?.[1] ?? path),
    isUpload: head!.includes('multipart/form-data'),
    fields: namedOf(content!, /<(?:input|select|textarea) [^>]*>/g),
    buttons: namedOf(content!, /<button [^>]*>/g),
  }))

const namedOf = (content: string, tag: RegExp): [string, string][] =>
  [...content.matchAll(tag)].flatMap(([found]) => {
    const [, name] = /\bname="([^"]*)"/.exec(found) ?? []
    return name === undefined ? [] : [[name, unescaped(/\bvalue="([^"]*)"/.exec(found)?.[1] ?? '')] as [string, string]]
  })
