export const decisionSpanish = {
  warned: 'No se ha retirado nada. Esto es una advertencia: si vuelve a ocurrir, puede haber otras consecuencias.',
  takenDown: 'Se ha retirado: los demás ya no pueden verlo. No se ha eliminado nada.',
  accountTakenDown:
    'Se ha suspendido la cuenta entera: los demás ya no pueden verla y ya no se puede usar. No se ha eliminado nada.',
  setAside: 'El archivo se ha apartado: hasta que se vuelva a revisar, solo los moderadores pueden verlo.',
  upheld: 'Se ha leído tu recurso y la decisión se mantiene.',
  reversed:
    'Tenías razón: la decisión queda anulada y lo que se había retirado vuelve a ser visible, salvo que otra decisión también lo haya retirado.',
} as const
