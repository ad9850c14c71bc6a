import { expect, test } from 'bun:test'
import { parseEnv } from 'node:util'
import { parseVariables } from './variables-file.ts'

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
