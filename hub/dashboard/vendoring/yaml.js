// The YAML parser and serializer, loaded with the editor page only.
export { Document, isAlias, isMap, isScalar, isSeq, parseDocument, Scalar, visit } from "yaml";
