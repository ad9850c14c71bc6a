import { expect, test } from 'bun:test'
import { spaceTypeName } from './space-type-name.ts'

test('a name in a language is found by its tag, or by one of its varieties', () => {
  expect(
    spaceTypeName({
      name: 'Forum',
      'name:lang': {
        'pt-PT': 'Fórum de lá',
        'pt-BR': 'Fórum',
        'DE-AT': 'Das Forum',
        nl: 'Het forum',
        ja: 'フォーラム',
      },
    }),
  ).toEqual({ general: 'Forum', inLanguage: { 'pt-BR': 'Fórum', de: 'Das Forum', ja: 'フォーラム' } })
})

test('the title is the newer name, in every language', () => {
  expect(
    spaceTypeName({ name: 'old', title: 'new', 'name:lang': { de: 'alt', fr: 'vieux' }, 'title:lang': { de: 'neu' } }),
  ).toEqual({ general: 'new', inLanguage: { de: 'neu', fr: 'vieux' } })
})

test('what is no text is ignored, however much there is of it', () => {
  const none = { general: null, inLanguage: {} }
  for (const given of [null, 5, '', '  ', [], ['de'], { de: '' }, { de: 5 }, { de: null }, { __proto__: { de: 'x' } }])
    expect(spaceTypeName({ name: given === '  ' ? '  ' : 5, 'name:lang': given })).toEqual(none)
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x${i}`, 'x']))
  expect(spaceTypeName({ 'name:lang': { ...many, de: 'late' } })).toEqual(none)
  expect(spaceTypeName({ 'name:lang': { [`de-${'x'.repeat(1000)}`]: 'long' } })).toEqual(none)
  const { general, inLanguage } = spaceTypeName({ name: 'x'.repeat(100_000), 'name:lang': { de: 'y'.repeat(100_000) } })
  expect([general?.length, inLanguage.de?.length]).toEqual([1000, 1000])
})
