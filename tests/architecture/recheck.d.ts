/** The build in JavaScript alone. The package's own entry starts Java or a binary where it finds one. */
declare module 'recheck/lib/browser.js' {
  export * from 'recheck'
}
