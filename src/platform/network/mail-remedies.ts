/** What an operator can do about a mail server that refuses, by what the connection or the server says. */

const remedies: readonly [said: RegExp, remedy: string][] = [
  [/getaddrinfo|ENOTFOUND|EAI_AGAIN|queryA/i, 'correct email.smtp_host'],
  [
    /wrong.version.number|packet.length.too.long|greeting never received|STARTTLS/i,
    'set email.smtp_tls to implicit for port 465, and to starttls for port 587',
  ],
  [/certificate|self.signed|altnames/i, 'set email.smtp_host to the name in the certificate of the mail server'],
  [
    /ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ECONNRESET|timeout/i,
    'check email.smtp_host and email.smtp_port; if they are right, ask the provider of this machine whether it blocks the port',
  ],
  [/\b53[045]\b|invalid login|authenticat|credentials/i, 'check email.smtp_username and email.smtp_password'],
  [/\b55[0-9]\b|sender/i, 'make sure that the account at the mail server may send as email.from'],
]

/** Returns what to do about a refusal. */
export const mailRemedy = (refusal: string): string =>
  remedies.find(([said]) => said.test(refusal))?.[1] ?? 'check the email.* keys'
