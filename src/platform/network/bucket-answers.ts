/** XML responses of a store: lists of objects and uploads, the result of a copy, errors. */
import type { XmlElement, XmlNode } from '@rgrove/parse-xml'
import { wholeOf } from '../../base/whole-of.ts'

/** Longest response, in bytes. */
const MAX_ANSWER_BYTES = 1024 ** 2

/** An element of a response. */
export class Answer {
  constructor(readonly element: XmlElement) {}

  get name(): string {
    return this.element.name
  }

  all(name: string): Answer[] {
    return this.element.children
      .filter((child): child is XmlElement => isElement(child) && child.name === name)
      .map((child) => new Answer(child))
  }

  /** Text of the first element with this name; undefined if there is none. */
  text(name: string): string | undefined {
    return this.all(name)[0]?.element.text
  }
}

/** Returns null if the body is empty. Throws if it is no XML, or too long. */
export async function answerOf(response: Response): Promise<Answer | null> {
  const text = await textOf(response)
  if (text === '') return null
  const { parseXml } = await import('@rgrove/parse-xml')
  // All ends of lines in one step (XML 1.0, section 2.11): the library changes them one by one, in quadratic time.
  const { root } = parseXml(text.replaceAll(/\r\n?/g, '\n'))
  return root === null ? null : new Answer(root)
}

/** Throws if the body is too long. */
export async function textOf({ body }: Response): Promise<string> {
  const tooLong = () => new Error('the response of the bucket is too long')
  return body === null ? '' : (await wholeOf(body, MAX_ANSWER_BYTES, tooLong)).toString()
}

const isElement = (node: XmlNode): node is XmlElement => node.type === 'element'
