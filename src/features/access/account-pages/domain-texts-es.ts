export const domainSpanish = {
  title: 'Tu propio dominio',
  heading: 'Usar @{handle}',
  lead: 'Para demostrar que controlas este dominio, publica <strong>una</strong> de las dos opciones de abajo y compruébalo después.',
  record: 'Un registro DNS',
  recordLead:
    'Añade este registro donde gestionas el dominio. Algunos proveedores esperan el nombre sin el dominio, como <code>_atproto</code>.',
  name: 'Nombre',
  type: 'Tipo',
  value: 'Valor',
  file: 'O un archivo en su sitio web',
  fileLead: 'Texto sin formato, con esta única línea.',
  address: 'Dirección',
  content: 'Contenido',
  check: 'Comprobar y cambiar mi nombre de usuario',
  checkMeans:
    'Cada comprobación vuelve a consultar el dominio. Si encuentra el registro o el archivo, tu nombre de usuario cambia al momento de {from} a @{to}.',
  back: 'Volver a tu cuenta',
  checkedAt: 'Comprobado a las {time}:',
  recordMissing:
    '<strong>Registro DNS:</strong> no encontrado. Un registro nuevo puede tardar unos minutos en verse en todas partes.',
  recordRight: '<strong>Registro DNS:</strong> encontrado y correcto.',
  recordOther: '<strong>Registro DNS:</strong> encontrado, pero indica otra cuenta, <code>{did}</code>.',
  fileMissing: '<strong>Archivo:</strong> no encontrado. Tiene que estar accesible por https sin iniciar sesión.',
  fileRight: '<strong>Archivo:</strong> encontrado y correcto.',
  fileOther: '<strong>Archivo:</strong> encontrado, pero indica otra cuenta, <code>{did}</code>.',
  recordFirst: 'El registro tiene prioridad sobre el archivo. Corrígelo o elimínalo.',
} as const
