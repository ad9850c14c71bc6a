import { type Command, exitCodes, type ExitCode, integerOption, Misuse } from '../command.ts'
import { setUp } from './set-up.ts'

const DEFAULT_DNS_WAIT_SECS = 600
const MAX_DNS_WAIT_SECS = 86_400

export const initCommand: Command = {
  summary: 'Set up a server: ask, check, write its configuration, start its service, create the first invite.',
  details: `Asks for what it cannot find out, checks disk, clock, mail, ports and DNS, says which DNS records to set and waits for
them, and writes the configuration with new secrets to ./holdfast.env. Then creates the first invite. With --service, it
writes to /etc/holdfast.env, installs a systemd service, starts it, and runs the doctor.

Without --tls, the server gets its certificates itself if it can open ports 80 and 443; otherwise, it expects a reverse
proxy. Keys without an option are taken from the environment: SERVICE_SERVICE_NAME=… is written to the file too.

Nothing is written before all checks have passed. It can be interrupted at any point, and run again: secrets and other
values in the file stay. Options that change values in the file need --force, and a copy of the file is kept.

Unattended: holdfast init --yes --domain pds.example.com --mail smtp://user:password@smtp.example.com --service

Exits with 0 if all is done, 1 if a check or a step failed, 2 if an option is wrong, and 130 if it was interrupted.`,
  options: {
    domain: { value: 'DOMAIN', doc: 'Host name of the server, and the domain under which it offers handles.' },
    'sign-up': {
      value: 'WHO',
      doc: 'Who may sign up: invite (with a code), open, or closed (operators create accounts).',
    },
    mail: {
      value: 'URL',
      doc: 'Mail server: smtp://user:password@host:port, smtps://… or "none"; "-" reads it from standard input.',
    },
    'mail-from': { value: 'ADDRESS', doc: 'Sender address of mail.' },
    'operator-mail': { value: 'ADDRESS', doc: 'Address of the operator, to which the server mails alerts.' },
    backups: { value: 'PLACE', doc: 'Folder or s3://bucket/prefix for daily backups, or "none".' },
    tls: { value: 'MODE', doc: 'Who encrypts connections: acme (the server), files, or off (a reverse proxy).' },
    port: { value: 'PORT', doc: 'Port for the reverse proxy and for commands (8080).' },
    data: { value: 'FOLDER', doc: 'Data folder.' },
    config: { value: 'FILE', doc: 'The configuration file to write; its name ends in .env.' },
    'from-reference': { value: 'FILE', doc: 'Translate the environment (PDS_*) of a reference PDS.' },
    service: { doc: 'Install and start a systemd service.' },
    address: { value: 'IP,…', doc: 'Public addresses of this machine, for the DNS records.' },
    'name-server': { value: 'IP,…', doc: "Ask these name servers about the records, not the machine's." },
    'dns-wait': { value: 'SECS', doc: `How long to wait for the records (${DEFAULT_DNS_WAIT_SECS}).` },
    'skip-dns': { doc: 'Do not check DNS.' },
    force: { doc: 'Change an existing configuration. A copy is kept.' },
    yes: { doc: 'Ask nothing.' },
    json: { doc: 'Print JSON, for scripts; progress goes to standard error.' },
  },
  async run(invocation): Promise<ExitCode> {
    const { options, flags, terminal } = invocation
    const isUnattended = flags.has('yes')
    if (!isUnattended && !terminal.isInteractive) throw new Misuse('there is no terminal to prompt at: add --yes')
    const dnsWaitSecs = Math.min(integerOption(options, 'dns-wait', 0) ?? DEFAULT_DNS_WAIT_SECS, MAX_DNS_WAIT_SECS)
    return (await setUp({ invocation, isUnattended, dnsWaitSecs })) ? exitCodes.ok : exitCodes.failed
  },
}
