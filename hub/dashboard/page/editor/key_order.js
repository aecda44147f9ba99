/**
 * Orders the keys of templates and environments whose source is not kept: conventional order, then
 * alphabetical. Pure.
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
  "conditions",
  "resources",
  "Resources",
  "outputs",
  "hooks",
];
const PARAMETER = ["type", "label", "description", "default", "hidden", "immutable", "constraints"];
const RESOURCE = ["type", "Type", "condition", "external_id", "depends_on", "properties"];
const OUTPUT = ["description", "condition", "value"];
const RULE = ["at", "on", "mode", "timeout", "on_timeout"];

/** Leading keys by the path of the map. @type {[RegExp, string[]][]} */
const FIRST = [
  [/^$/, TEMPLATE],
  [/^parameters\/[^/]+$/i, PARAMETER],
  [/^resources\/[^/]+$/i, RESOURCE],
  [/^outputs\/[^/]+$/i, OUTPUT],
  [/hooks$/, RULE],
];

/** @param {any} value @param {string} [path] @returns {any} */
export function orderKeys(value, path = "") {
  if (Array.isArray(value)) return value.map((item) => orderKeys(item, path));
  if (value === null || typeof value !== "object") return value;
  const first = FIRST.find(([at]) => at.test(path))?.[1] ?? [];
  const names = Object.keys(value).sort(
    (a, b) => rank(first, a) - rank(first, b) || (a < b ? -1 : 1),
  );
  return Object.fromEntries(
    names.map((name) => [name, orderKeys(value[name], path === "" ? name : `${path}/${name}`)]),
  );
}

/** @param {string[]} first @param {string} name */
function rank(first, name) {
  const at = first.indexOf(name);
  return at < 0 ? first.length : at;
}
