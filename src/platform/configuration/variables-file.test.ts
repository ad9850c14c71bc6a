import { expect, test } from 'bun:test'
import { parseEnv } from 'node:util'
import { parseVariables, unsetLine } from './variables-file.ts'

test('a number sign is part of a value, unless white space is before it', () => {
  expect(parseVariables('A=ab#cd\nB=#ab\nC=ab #cd\nD= # none\n#E=ab\n  # F=ab')).toEqual({
    A: 'ab#cd',
    B: '#ab',
    C: 'ab',
    D: '',
  })
})

test('everything else is read as the runtime reads it', () => {
  const texts = [
    '',
    'A=',
    'A',
    '=a',
    'export A=b',
    ' A = b ',
    'A=b=c',
    'A=b\r\nB=c\r\n',
    '\uFEFFA=b',
    'A=$HOME x\\y',
    "A='x # y'",
    'A="x # y" # z',
    'A="x\\ny"',
    "A='x\nB=y'\nC=z",
    'A=`x`',
    "A='open\nB=c",
    'A=1\nA=2',
    'A.B-c=d',
    'no variable\nA=b',
  ]
  for (const text of texts)
    expect([text, parseVariables(text)]).toEqual([text, parseEnv(text) as Record<string, string>])
})

test('the first line is told that names a variable and sets none', () => {
  const found = (text: string) => unsetLine(text, 'A_')
  expect(['', '# A_B: 1\n\nA_B=1', "A_B='x\nA_C: 1'\nset -a", 'B_A: 1\nA_B='].map(found)).toEqual(Array(4).fill(null))
  expect(['A_B: 1', 'x\n  A_B 1\nA_C', 'A_B="x\ny"\nexport A_C', 'A_B C=1'].map(found)).toEqual([1, 2, 3, 1])
})
