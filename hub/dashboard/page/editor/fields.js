/** The form fields of a template's parameters. Pure. */

/**
 * kind: string, number, boolean, json or list.
 * @typedef {{name: string, label: string, description: string, kind: string, hidden: boolean,
 *   immutable: boolean, fallback: unknown, allowed: unknown[], rules: string[],
 *   group: string}} Field
 */

/** @type {Record<string, string>} */
const KINDS = {
  string: "string",
  number: "number",
  boolean: "boolean",
  json: "json",
  comma_delimited_list: "list",
  String: "string",
  Number: "number",
  Boolean: "boolean",
  Json: "json",
  CommaDelimitedList: "list",
};

/**
 * The parameters of a template, in order; those of groups first.
 * @param {any} template @returns {Field[]}
 */
export function fieldsOf(template) {
  const section = mapOf(template?.parameters ?? template?.Parameters);
  const groups = template?.parameter_groups ?? template?.ParameterGroups;
  const inGroups = new Map(
    (Array.isArray(groups) ? groups : []).flatMap((group) =>
      Array.isArray(group?.parameters)
        ? group.parameters.map((/** @type {string} */ name) => [name, String(group.label ?? "")])
        : [],
    ),
  );
  const fields = Object.entries(section).map(([name, definition]) =>
    fieldOf(name, mapOf(definition), inGroups.get(name) ?? ""),
  );
  return [...fields.filter((field) => field.group), ...fields.filter((field) => !field.group)];
}

/** @param {string} name @param {Record<string, any>} definition @param {string} group @returns {Field} */
function fieldOf(name, definition, group) {
  const constraints = (
    Array.isArray(definition.constraints) ? definition.constraints : [cfnConstraints(definition)]
  ).map(mapOf);
  const allowed = constraints.find((constraint) =>
    Array.isArray(constraint.allowed_values),
  )?.allowed_values;
  const hides = definition.hidden ?? definition.NoEcho ?? false;
  return {
    name,
    label: String(definition.label ?? name),
    description: String(definition.description ?? definition.Description ?? ""),
    kind: KINDS[definition.type ?? definition.Type] ?? "string",
    hidden: hides === true || String(hides).toLowerCase() === "true",
    immutable: definition.immutable === true,
    fallback: definition.default ?? definition.Default,
    allowed: allowed ?? [],
    rules: constraints.flatMap(ruleTexts),
    group,
  };
}

/** Constraints in the CloudFormation format, beside the type. @param {Record<string, any>} definition */
function cfnConstraints(definition) {
  /** @type {Record<string, any>} */
  const result = {};
  if (definition.AllowedValues) result.allowed_values = definition.AllowedValues;
  if (definition.AllowedPattern) result.allowed_pattern = definition.AllowedPattern;
  if (definition.MinLength ?? definition.MaxLength)
    result.length = { min: definition.MinLength, max: definition.MaxLength };
  if (definition.MinValue ?? definition.MaxValue)
    result.range = { min: definition.MinValue, max: definition.MaxValue };
  return result;
}

/** @param {Record<string, any>} item @returns {string[]} */
function ruleTexts(item) {
  if (item.description && !item.allowed_values) return [String(item.description)];
  const texts = [];
  if (item.range) texts.push(rangeText("", mapOf(item.range), ""));
  if (item.length) texts.push(rangeText("", mapOf(item.length), " characters"));
  if (item.modulo) texts.push(`in steps of ${mapOf(item.modulo).step}`);
  if (item.allowed_pattern) texts.push(`matches ${item.allowed_pattern}`);
  if (item.custom_constraint) texts.push(`must be a ${item.custom_constraint}`);
  return texts.filter(Boolean);
}

/** @param {string} before @param {Record<string, any>} range @param {string} after */
function rangeText(before, { min, max }, after) {
  if (min !== undefined && max !== undefined) return `${before}${min} to ${max}${after}`;
  if (min !== undefined) return `${before}at least ${min}${after}`;
  if (max !== undefined) return `${before}at most ${max}${after}`;
  return "";
}

/** @param {unknown} value @returns {Record<string, any>} */
function mapOf(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? /** @type {Record<string, any>} */ (value)
    : {};
}

/** A value as control text. @param {Field} field @param {unknown} value */
export function controlText(field, value) {
  if (value === undefined || value === null) return "";
  if (field.kind === "list" && Array.isArray(value)) return value.join(",");
  if (typeof value === "object") return JSON.stringify(value, null, 2);
  return String(value);
}

/**
 * Control text as a value of the field's kind. Throws SyntaxError for invalid JSON.
 * @param {Field} field @param {string} text
 */
export function parseControlText(field, text) {
  if (field.kind === "number" && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) return Number(text);
  if (field.kind === "boolean" && /^(true|false)$/.test(text)) return text === "true";
  if (field.kind === "json") return JSON.parse(text);
  return text;
}
