export type { Node, Pair, YAMLMap, YAMLSeq } from "yaml";
export { Document, isMap, isScalar, isSeq, LineCounter, parseDocument, Scalar, visit } from "yaml";
