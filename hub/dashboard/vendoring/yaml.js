// What reads and writes the texts of the editor: loaded with it.
export { Document, isAlias, isMap, isScalar, isSeq, parseDocument, Scalar, visit } from "yaml";
