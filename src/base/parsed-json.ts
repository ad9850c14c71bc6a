import { isDeeperThan, MAX_JSON_DEPTH } from './json-depth.ts'

/** Returns what the text says, or undefined if it is not JSON, or nested deeper than `MAX_JSON_DEPTH`. */
export function parsedJson(text: string): unknown {
  if (isDeeperThan(text, MAX_JSON_DEPTH)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
