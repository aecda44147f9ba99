/**
 * Builds a form from a JSON schema: its controls and their initial values. Pure.
 *
 * Schemas without a suitable control are edited as JSON, so that every schema can be answered.
 */

/** @typedef {import("../api/documents.js").Schema} Schema */
/** The value of a control: text, checked, or the chosen options. */
/** @typedef {string | boolean | string[]} Raw */
/** @typedef {Record<string, Raw>} Raws by the path of the control */
/** @typedef {"group" | "text" | "long" | "number" | "choice" | "choices" | "flag" | "lines" | "json"} Kind */
/**
 * path: as the server names it, below `data`. options: of a choice. input: type of an input
 * element. initial: initial value. children: of a group.
 * @typedef {{kind: Kind, path: string, key: string, label: string, hint: string, required: boolean,
 *   schema: Schema, options: unknown[], labels: string[], input: string, initial: Raw | undefined,
 *   children: Control[]}} Control
 */

const MAX_DEPTH = 6;
/** Maximum length in characters of a single-line text. */
const LONG_TEXT = 200;
/** Keywords that a form of the properties cannot express. */
const MORE_THAN_PROPERTIES = [
  "anyOf",
  "oneOf",
  "if",
  "not",
  "dependentSchemas",
  "patternProperties",
];
/** @type {Record<string, string>} */
const INPUTS = { date: "date", time: "time", email: "email", uri: "url", password: "password" };

/** The form for the data that a rule requests. @param {Schema} schema @returns {Control} */
export function formOf(schema) {
  return buildControl(schema, schema, { path: "", key: "", required: true }, 0);
}

/**
 * @param {unknown} definition @param {Schema} root
 * @param {{path: string, key: string, required: boolean}} place @param {number} depth
 * @returns {Control}
 */
function buildControl(definition, root, place, depth) {
  const schema = resolveSchema(definition, root);
  const kind = depth > MAX_DEPTH ? "json" : kindOf(schema);
  const made = {
    ...place,
    kind,
    label: schema.title ?? (place.key || "Data"),
    hint: schema.description ?? "",
    schema,
    options: [],
    labels: [],
    input: INPUTS[schema.writeOnly ? "password" : schema.format] ?? "text",
    initial: undefined,
    /** @type {Control[]} */
    children: [],
  };
  if (kind === "group") return { ...made, children: childControls(schema, root, place, depth) };
  if (kind === "choice") Object.assign(made, choices(schema));
  if (kind === "choices") Object.assign(made, choices(resolveSchema(schema.items, root)));
  return { ...made, initial: initialValue(made, schema.default ?? constValue(schema, kind)) };
}

/** @param {Schema} schema @param {Kind} kind */
function constValue(schema, kind) {
  return kind === "choice" && "const" in schema ? schema.const : undefined;
}

/**
 * @param {Schema} schema @param {Schema} root @param {{path: string}} place @param {number} depth
 */
function childControls(schema, root, place, depth) {
  const needed = new Set(schema.required ?? []);
  return Object.entries(schema.properties).map(([key, property]) => {
    const path = place.path ? `${place.path}.${key}` : key;
    return buildControl(property, root, { path, key, required: needed.has(key) }, depth + 1);
  });
}

/**
 * Resolves references within the document and merges `allOf`.
 * @param {unknown} definition @param {Schema} root @returns {Schema}
 */
function resolveSchema(definition, root, depth = 0) {
  if (typeof definition !== "object" || definition === null) return {};
  /** @type {Schema} */
  let schema = definition;
  if (depth > MAX_DEPTH) return schema;
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#")) {
    const { $ref, ...rest } = schema;
    schema = { ...resolveSchema(resolvePointer(root, $ref), root, depth + 1), ...rest };
  }
  if (!Array.isArray(schema.allOf)) return schema;
  const { allOf, ...rest } = schema;
  return allOf.map((item) => resolveSchema(item, root, depth + 1)).reduce(mergeSchemas, rest);
}

/** @param {Schema} a @param {Schema} b @returns {Schema} */
function mergeSchemas(a, b) {
  const both = { ...b, ...a };
  if (a.properties || b.properties) both.properties = { ...b.properties, ...a.properties };
  if (a.required || b.required)
    both.required = [...new Set([...(a.required ?? []), ...(b.required ?? [])])];
  return both;
}

/** @param {Schema} root @param {string} pointer @returns {unknown} */
function resolvePointer(root, pointer) {
  /** @type {any} */
  let result = root;
  for (const part of pointer.slice(1).split("/").filter(Boolean))
    result = result?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  return result;
}

/** The type of a schema, ignoring null. @param {Schema} schema @returns {string | undefined} */
function typeOf(schema) {
  const declared = [schema.type ?? (schema.properties ? "object" : [])].flat();
  const types = declared.filter((/** @type {string} */ item) => item !== "null");
  return types.length === 1 ? types[0] : undefined;
}

/** @param {Schema} schema @returns {Kind} */
function kindOf(schema) {
  const type = typeOf(schema);
  if (type === "boolean") return "flag";
  if (choices(schema).options.length > 0) return "choice";
  if (type === "object") {
    const plain = !MORE_THAN_PROPERTIES.some((word) => word in schema);
    return plain && Object.keys(schema.properties ?? {}).length > 0 ? "group" : "json";
  }
  if (["anyOf", "oneOf", "if", "not"].some((word) => word in schema)) return "json";
  if (type === "string") return (schema.maxLength ?? 0) > LONG_TEXT ? "long" : "text";
  if (type === "number" || type === "integer") return "number";
  if (type === "array") return kindOfItems(schema.items ?? {});
  return "json";
}

/** @param {Schema} items @returns {Kind} */
function kindOfItems(items) {
  if (Array.isArray(items.enum)) return "choices";
  return ["string", "number", "integer"].includes(typeOf(items) ?? "") ? "lines" : "json";
}

/** @param {Schema} schema @returns {{options: unknown[], labels: string[]}} */
function choices(schema) {
  if ("const" in schema) return { options: [schema.const], labels: [optionLabel(schema.const)] };
  if (Array.isArray(schema.enum))
    return {
      options: schema.enum,
      labels: schema.enum.map((/** @type {unknown} */ item) => optionLabel(item)),
    };
  /** @type {Schema[]} */
  const named = schema.oneOf ?? schema.anyOf ?? [];
  if (!named.every((item) => typeof item === "object" && "const" in item))
    return { options: [], labels: [] };
  return {
    options: named.map((item) => item.const),
    labels: named.map((item) => item.title ?? optionLabel(item.const)),
  };
}

/** @param {unknown} value */
function optionLabel(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * The control value that represents a JSON value.
 * @param {{kind: Kind, options: unknown[]}} of @param {unknown} value @returns {Raw | undefined}
 */
function initialValue(of, value) {
  if (value === undefined) return undefined;
  switch (of.kind) {
    case "flag":
      return value === true;
    case "choice":
      return optionIndex(of.options, value);
    case "choices":
      return [value]
        .flat()
        .map((item) => optionIndex(of.options, item))
        .filter(Boolean);
    case "lines":
      return [value].flat().join("\n");
    case "json":
      return JSON.stringify(value, null, 2);
    default:
      return optionLabel(value);
  }
}

/** The index of an option as text. @param {unknown[]} options @param {unknown} value */
function optionIndex(options, value) {
  const at = options.findIndex((option) => JSON.stringify(option) === JSON.stringify(value));
  return at < 0 ? "" : String(at);
}
