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
export function patchable(hook) {
  const there = hook.resource?.properties ?? {};
  const names = anyProperty(hook) ? Object.keys(there) : hook.patch;
  return names.map((name) => {
    const hidden = JSON.stringify(there[name] ?? null).includes(MASK);
    const known = name in there && !hidden;
    return { name, now: known ? JSON.stringify(there[name], null, 1) : "", hidden };
  });
}

/**
 * The changed properties to send.
 * @param {Hook} hook @param {Record<string, string>} written by property, as JSON
 * @returns {{properties: Record<string, unknown>, wrongs: Record<string, string>}}
 */
export function parsePatch(hook, written) {
  /** @type {Record<string, unknown>} */
  const properties = {};
  /** @type {Record<string, string>} */
  const wrongs = {};
  const before = Object.fromEntries(patchable(hook).map((one) => [one.name, one.now]));
  for (const [name, text] of Object.entries(written)) {
    if (text === before[name] || text.trim() === "") continue;
    const read = parseJson(text);
    if (read.wrong) wrongs[`properties.${name}`] = read.wrong;
    else properties[name] = read.value;
  }
  const nothing = Object.keys(properties).length === 0 && Object.keys(wrongs).length === 0;
  if (nothing) wrongs.properties = "Change at least one property, or use Continue.";
  return { properties, wrongs };
}
