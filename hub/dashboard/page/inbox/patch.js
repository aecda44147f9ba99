/** The properties that an answer may change, and the changes entered. Pure. */

import { parseJson } from "./form_values.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** In a rule's `patch`: any property. */
const ANY = "*";
const MASK = "******";

/** Whether properties that the rule does not name may be changed. @param {Hook} hook */
export function anyProperty(hook) {
  return hook.patch.includes(ANY);
}

/**
 * The changeable properties with their current values as JSON; "" if hidden or unknown.
 * @param {Hook} hook @returns {{name: string, now: string, hidden: boolean}[]}
 */
export function patchableProperties(hook) {
  const properties = hook.resource?.properties ?? {};
  const names = anyProperty(hook) ? Object.keys(properties) : hook.patch;
  return names.map((name) => {
    const hidden = JSON.stringify(properties[name] ?? null).includes(MASK);
    const known = name in properties && !hidden;
    return { name, now: known ? JSON.stringify(properties[name], null, 1) : "", hidden };
  });
}

/**
 * The changed properties to send.
 * @param {Hook} hook @param {Record<string, string>} written by property, as JSON
 * @returns {{properties: Record<string, unknown>, errors: Record<string, string>}}
 */
export function parsePatch(hook, written) {
  /** @type {Record<string, unknown>} */
  const properties = {};
  /** @type {Record<string, string>} */
  const errors = {};
  const before = Object.fromEntries(
    patchableProperties(hook).map((property) => [property.name, property.now]),
  );
  for (const [name, text] of Object.entries(written)) {
    if (text === before[name] || text.trim() === "") continue;
    const read = parseJson(text);
    if (read.error) errors[`properties.${name}`] = read.error;
    else properties[name] = read.value;
  }
  const nothing = Object.keys(properties).length === 0 && Object.keys(errors).length === 0;
  if (nothing) errors.properties = "Change at least one property, or use Continue.";
  return { properties, errors };
}
