import { expect, test } from 'bun:test'
import { html, plainName } from './html.ts'

test('values are escaped wherever they stand, templates are not', () => {
  const evil = `"><script>alert('x')</script>`
  const { text } = html`<p title="${evil}">${[html`<b>${evil}</b>`, evil]}${null}${false}${7}</p>`
  expect(text).not.toContain('<script>')
  expect(text).toStartWith('<p title="&quot;&gt;&lt;script&gt;')
  expect(text).toEndWith('</script&gt;7</p>'.replace('</script', '&lt;/script'))
})

test('a name cannot turn the text around, break the line or fill the page', () => {
  expect(plainName('My\u202Eapp\u0000 \n  of\u200B notes')).toBe('Myapp of notes')
  expect(plainName('x'.repeat(200))).toHaveLength(80)
})
