declare module '*.sql' {
  const text: string
  export default text
}

declare module '*.css' {
  const text: string
  export default text
}

declare module '*.js' {
  const text: string
  export default text
}

declare module '*.service' {
  const text: string
  export default text
}

declare module '*/pds' {
  const text: string
  export default text
}
