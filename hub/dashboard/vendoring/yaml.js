// What reads and writes the texts of the editor: loaded with it.
export { Document, isMap, isScalar, isSeq, LineCounter, parseDocument, Scalar, visit } from "yaml";
