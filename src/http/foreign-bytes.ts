/**
 * Headers of responses whose bytes and media type a stranger has chosen: browsers must not run them as a page or a
 * script of this origin.
 */
export const runsNothing = { 'Content-Security-Policy': "default-src 'none'; sandbox" }
