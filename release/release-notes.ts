/** Notes of a release: what CHANGELOG.md says about the version, and what was tested. */
import { OperatorError } from '../src/base/operator-error.ts'

const UNRELEASED = 'Unreleased'

/**
 * Returns the text of the changelog about a version; with `isTrial`, the unreleased changes if there are any. Throws
 * OperatorError if the version has no text, or if there are unreleased changes.
 */
export function changesOf(changelog: string, version: string, isTrial: boolean): string {
  const sections = new Map(
    changelog
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [heading = '', ...lines] = section.split('\n')
        return [/^\[([^\]]+)\]/.exec(heading)?.[1] ?? heading, lines.join('\n').trim()]
      }),
  )
  const unreleased = sections.get(UNRELEASED) ?? ''
  if (isTrial && unreleased !== '') return unreleased
  if (unreleased !== '')
    throw new OperatorError(
      `CHANGELOG.md has changes under "${UNRELEASED}": give them a section of a version, and set that version in package.json. For a trial, add --trial`,
    )
  const changes = sections.get(version)
  if (!changes) throw new OperatorError(`CHANGELOG.md has no section for ${version}`)
  return changes
}

/** The result for one platform. */
export interface Tried {
  platform: string
  /** Null if the executable passed. */
  left: string | null
  smoke: string
}

export function releaseNotes(
  version: string,
  changes: string,
  tried: readonly Tried[],
  unsmoked: readonly string[],
): string {
  return `# Holdfast ${version}

${changes}

## Platforms

| Platform | Smoke tests |
| --- | --- |
${tried.map(({ platform, left, smoke }) => `| ${platform} | ${left === null ? smoke : `left out: ${left}`} |`).join('\n')}

Not run before this release: ${unsmoked.join('; ')}.

## Check what you downloaded

\`\`\`sh
minisign -Vm holdfast-linux-x64 -P KEY
\`\`\`

\`SHA256SUMS\` is signed too: check its signature, and then \`sha256sum --check --ignore-missing SHA256SUMS\`.
`
}
