export const decisionGerman = {
  warned:
    'Nichts wurde gesperrt. Das ist eine Verwarnung: Wenn es noch einmal geschieht, können weitere Schritte folgen.',
  takenDown: 'Es wurde gesperrt: Andere können es nicht mehr sehen. Nichts wurde gelöscht.',
  accountTakenDown:
    'Das ganze Konto wurde gesperrt: Andere können es nicht mehr sehen, und es kann nicht mehr benutzt werden. Nichts wurde gelöscht.',
  setAside: 'Die Datei wurde zurückgehalten: Bis sie erneut geprüft ist, kann nur die Moderation sie sehen.',
  upheld: 'Dein Einspruch wurde gelesen, und es bleibt bei der Entscheidung.',
  reversed:
    'Dein Einspruch war berechtigt: Die Entscheidung ist zurückgenommen, und was gesperrt war, ist wieder sichtbar, sofern es nicht auch durch eine andere Entscheidung gesperrt ist.',
} as const
