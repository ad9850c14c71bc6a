/** The words of `openedWith` (`origin.ts`) and `programOf`, which are stored in English, in the language of a page. */
import { programParts } from '../protocol/user-agent.ts'
import { plainName, type Wording } from './html.ts'
import { layoutTexts as texts } from './layout-texts.ts'

const wordsFor: Readonly<Record<string, Wording>> = {
  'an Apple device': texts.appleDevice,
  'An Android app': texts.androidApp,
  'Holdfast command line': texts.ownCommandLine,
  'Holdfast wallet': texts.ownWallet,
  'Holdfast agent': texts.ownAgent,
}
const wordFor = (name: string): Wording => (Object.hasOwn(wordsFor, name) ? wordsFor[name]! : name)

/** Returns the words as one short line, such as `bsky.app in Firefox on Linux`. */
export function programPhrase(words: string, maxChars?: number): Wording {
  const { site, program, system } = programParts(plainName(words, maxChars))
  const name = wordFor(program)
  const whole = system === null ? name : texts.programOn({ program: name, system: wordFor(system) })
  return site === null ? whole : texts.siteIn({ site, program: whole })
}
