/**
 * The order of keys in templates and environments whose source is not kept. The server returns the
 * order in which they were sent, except for documents that an earlier release stored: these have the
 * order of the database, and get a conventional one, then an alphabetical one. Pure.
 */

const TEMPLATE = [
  "heat_template_version",
  "AWSTemplateFormatVersion",
  "HeatTemplateFormatVersion",
  "description",
  "Description",
  "parameter_groups",
  "parameters",
  "Parameters",
  "rules",
  "locals",
  "conditions",
  "data",
  "resources",
  "Resources",
  "outputs",
  "hooks",
];
const PARAMETER = [
  "type",
  "label",
  "description",
  "default",
  "hidden",
  "immutable",
  "constraints",
  "schema",
];
const RESOURCE = [
  "type",
  "Type",
  "id",
  "for_each",
  "condition",
  "external_id",
  "depends_on",
  "properties",
];
const OUTPUT = ["description", "condition", "value"];
const RULE = ["at", "on", "mode", "timeout", "on_timeout"];

/** Leading keys by the path of the map. @type {[RegExp, string[]][]} */
const FIRST = [
  [/^$/, TEMPLATE],
  [/^parameters\/[^/]+$/i, PARAMETER],
  [/^(resources|data)\/[^/]+$/i, RESOURCE],
  [/^outputs\/[^/]+$/i, OUTPUT],
  [/hooks$/, RULE],
];

/** @param {any} value @returns {any} */
export function orderKeys(value) {
  return hasDatabaseOrder(value) ? conventional(value, "") : value;
}

/** Whether every map has its keys by length, then by text. @param {any} value @returns {boolean} */
function hasDatabaseOrder(value) {
  if (value === null || typeof value !== "object") return true;
  const names = Array.isArray(value) ? [] : Object.keys(value);
  const sorted = names.every((name, at) => at === 0 || !comesBefore(name, names[at - 1] ?? ""));
  return sorted && Object.values(value).every(hasDatabaseOrder);
}

/** @param {string} a @param {string} b */
function comesBefore(a, b) {
  const [first, second] = [a, b].map((name) => new TextEncoder().encode(name).length);
  return first === second ? a < b : Number(first) < Number(second);
}

/** @param {any} value @param {string} path @returns {any} */
function conventional(value, path) {
  if (Array.isArray(value)) return value.map((item) => conventional(item, path));
  if (value === null || typeof value !== "object") return value;
  const first = FIRST.find(([at]) => at.test(path))?.[1] ?? [];
  const names = Object.keys(value).sort(
    (a, b) => rank(first, a) - rank(first, b) || (a < b ? -1 : 1),
  );
  return Object.fromEntries(
    names.map((name) => [name, conventional(value[name], path === "" ? name : `${path}/${name}`)]),
  );
}

/** @param {string[]} first @param {string} name */
function rank(first, name) {
  const at = first.indexOf(name);
  return at < 0 ? first.length : at;
}
