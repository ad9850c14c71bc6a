/** How a ZIP archive with at least one file begins. */
export const ZIP_MAGIC = 'PK\x03\x04'
