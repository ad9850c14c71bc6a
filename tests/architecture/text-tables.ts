/** The tables of texts, with all their translations. */
import { join } from 'node:path'
import { contentsOf, type EnglishTexts, type TextShape } from '../../src/http/texts.ts'
import { sources } from './sources.ts'

const SRC = join(import.meta.dir, '../../src')

export const formsOf = (text: TextShape): string[] => (typeof text === 'string' ? [text] : Object.values(text))

export interface Translation {
  table: string
  language: string
  english: EnglishTexts
  texts: EnglishTexts
}

export async function translations(): Promise<Translation[]> {
  const paths = sources
    .filter(({ text }) => text.includes(' = textTable('))
    .map(({ path }) => path)
    .filter((path) => path !== 'http/texts.ts')
  const found = await Promise.all(
    paths.map(async (path) => {
      const exported = Object.values((await import(join(SRC, path))) as Record<string, object>)
      return Promise.all(
        exported.map(async (table) => {
          const { english, loaders } = contentsOf(table)!
          const all = { en: async () => english, ...loaders }
          return Promise.all(
            Object.entries(all).map(async ([language, load]) => ({
              table: path,
              language,
              english,
              texts: await load(),
            })),
          )
        }),
      )
    }),
  )
  return found.flat(2)
}
