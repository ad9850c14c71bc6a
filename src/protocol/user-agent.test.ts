import { expect, test } from 'bun:test'
import { knownProgramOf, programOf } from './user-agent.ts'

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox on Linux'],
  ['Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0', 'Firefox on Android'],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
    'Chrome on Windows',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0',
    'Edge on Windows',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15',
    'Safari on macOS',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    'Safari on iPhone',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0 Mobile/15E148 Safari/604.1',
    'Chrome on iPhone',
  ],
  ['Bluesky/1.90.0 CFNetwork/1494.0.7 Darwin/23.4.0', 'Bluesky on an Apple device'],
  ['okhttp/4.9.2', 'An Android app'],
  ['curl/8.5.0', 'curl'],
  ['holdfast-wallet/0.1.0 (Linux)', 'Holdfast wallet on Linux'],
  ['holdfast-agent/0.1.0 (Macintosh)', 'Holdfast agent on macOS'],
  ['holdfast-cli/0.1.0', 'Holdfast command line'],
  ['node', 'node'],
  ['Mozilla/5.0', null],
  ['', null],
  ['<script>alert(1)</script>', null],
  [`${'x'.repeat(5000)}/1`, null],
  [`Mozilla/5.0 ${'x'.repeat(600)} Firefox/128.0`, null],
])('%s', (header, name) => expect(programOf(header)).toBe(name))

test.each([
  ['Firefox on Linux', 'Firefox on Linux'],
  ['Safari', 'Safari'],
  ['bsky.app in Samsung Internet on Android', 'Samsung Internet on Android'],
  ['Holdfast wallet on Windows', 'Holdfast wallet on Windows'],
  ['Holdfast agent', 'Holdfast agent'],
  ['Go to evil.example', null],
  ['evil.example', null],
  ['Firefox on evil.example', null],
  ['notFirefox', null],
  ['Bluesky on an Apple device', null],
])('of the words %s', (words, known) => expect(knownProgramOf(words)).toBe(known))
