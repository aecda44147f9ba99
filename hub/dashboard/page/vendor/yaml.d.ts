export type { Node, Pair, YAMLMap, YAMLSeq } from "yaml";
export { Document, isAlias, isMap, isScalar, isSeq, parseDocument, Scalar, visit } from "yaml";
