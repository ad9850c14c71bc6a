/** The page a person sees who opens the server's address in a browser. No scripts; every value is escaped. */
import type { Context } from '../../platform/context.ts'
import { SOFTWARE } from '../../platform/version.ts'

const style = `
  :root { color-scheme: light dark; font: 1.05rem/1.6 system-ui, sans-serif }
  body { max-width: 38rem; margin: 4rem auto; padding: 0 1.25rem }
  h1 { font-size: 1.6rem; margin-bottom: .25rem }
  dt { opacity: .7; font-size: .9rem; margin-top: .9rem }
  dd { margin: 0; overflow-wrap: anywhere }
  a { color: light-dark(#0b57d0, #a8c7fa) }
`

export function landingPage({ config, serverDid }: Context): Response {
  const { host } = new URL(config.publicUrl)
  const facts: [string, string][] = [
    ['Server DID', Bun.escapeHTML(serverDid)],
    ['Software', SOFTWARE],
    ['Handles under', config.availableUserDomains.map((domain) => Bun.escapeHTML(`.${domain.replace(/^\./, '')}`)).join(', ')],
    ['Sign-up', config.inviteCodeRequired ? 'with an invite code' : 'open to everyone'],
  ]
  const { email } = config.contact
  if (email !== null) facts.push(['Contact', `<a href="mailto:${Bun.escapeHTML(encodeURI(email))}">${Bun.escapeHTML(email)}</a>`])
  const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${Bun.escapeHTML(host)}</title><style>${style}</style></head>
<body><main><h1>${Bun.escapeHTML(host)}</h1>
<p>This is a Personal Data Server of the <a href="https://atproto.com">AT Protocol</a>. Its interface is under <code>/xrpc/</code>.</p>
<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl></main></body></html>
`
  return new Response(page, {
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
    },
  })
}
