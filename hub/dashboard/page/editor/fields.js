/** The form of a template's parameters: what each takes, and what was given. Pure. */

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

/** Parameters of a template, in its order, those of its groups first. @param {any} template @returns {Field[]} */
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
  const fields = Object.entries(section).map(([name, said]) =>
    fieldOf(name, mapOf(said), inGroups.get(name) ?? ""),
  );
  return [...fields.filter((one) => one.group), ...fields.filter((one) => !one.group)];
}

/** @param {string} name @param {Record<string, any>} said @param {string} group @returns {Field} */
function fieldOf(name, said, group) {
  const constraints = (Array.isArray(said.constraints) ? said.constraints : [older(said)]).map(
    mapOf,
  );
  const allowed = constraints.find((one) => Array.isArray(one.allowed_values))?.allowed_values;
  const hides = said.hidden ?? said.NoEcho ?? false;
  return {
    name,
    label: String(said.label ?? name),
    description: String(said.description ?? said.Description ?? ""),
    kind: KINDS[said.type ?? said.Type] ?? "string",
    hidden: hides === true || String(hides).toLowerCase() === "true",
    immutable: said.immutable === true,
    fallback: said.default ?? said.Default,
    allowed: allowed ?? [],
    rules: constraints.flatMap(inWords),
    group,
  };
}

/** Constraints of the older form, where they stand beside the type. @param {Record<string, any>} said */
function older(said) {
  /** @type {Record<string, any>} */
  const found = {};
  if (said.AllowedValues) found.allowed_values = said.AllowedValues;
  if (said.AllowedPattern) found.allowed_pattern = said.AllowedPattern;
  if (said.MinLength ?? said.MaxLength) found.length = { min: said.MinLength, max: said.MaxLength };
  if (said.MinValue ?? said.MaxValue) found.range = { min: said.MinValue, max: said.MaxValue };
  return found;
}

/** @param {Record<string, any>} one @returns {string[]} */
function inWords(one) {
  if (one.description && !one.allowed_values) return [String(one.description)];
  const said = [];
  if (one.range) said.push(between("", mapOf(one.range), ""));
  if (one.length) said.push(between("", mapOf(one.length), " long"));
  if (one.modulo) said.push(`in steps of ${mapOf(one.modulo).step}`);
  if (one.allowed_pattern) said.push(`fits ${one.allowed_pattern}`);
  if (one.custom_constraint) said.push(`is a ${one.custom_constraint}`);
  return said.filter(Boolean);
}

/** @param {string} before @param {Record<string, any>} range @param {string} after */
function between(before, { min, max }, after) {
  if (min !== undefined && max !== undefined) return `${before}${min} to ${max}${after}`;
  if (min !== undefined) return `${before}${min} or more${after}`;
  if (max !== undefined) return `${before}${max} at most${after}`;
  return "";
}

/** @param {unknown} value @returns {Record<string, any>} */
function mapOf(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? /** @type {Record<string, any>} */ (value)
    : {};
}

/** As it stands in a control. @param {Field} field @param {unknown} value */
export function typed(field, value) {
  if (value === undefined || value === null) return "";
  if (field.kind === "list" && Array.isArray(value)) return value.join(",");
  if (typeof value === "object") return JSON.stringify(value, null, 2);
  return String(value);
}

/**
 * What was typed as a value of its kind. Throws SyntaxError for JSON that is none.
 * @param {Field} field @param {string} text
 */
export function taken(field, text) {
  if (field.kind === "number" && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) return Number(text);
  if (field.kind === "boolean" && /^(true|false)$/.test(text)) return text === "true";
  if (field.kind === "json") return JSON.parse(text);
  return text;
}
