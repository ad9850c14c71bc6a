/** Something only the operator can put right. Its message is a whole sentence for that reader, and no stack is shown. */
export class OperatorError extends Error {}
