/** The properties that an answer may change, and what was made of them. Pure. */

import { jsonIn } from "./reading.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** In a rule's `patch`: any property. */
const ANY = "*";
const MASK = "******";

/** Whether other properties than those that are named may be changed. @param {Hook} hook */
export function anyProperty(hook) {
  return hook.patch.includes(ANY);
}

/**
 * What may be changed, with what stands there now as JSON; "" where that is hidden or not known.
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
 * What is sent: those that were changed.
 * @param {Hook} hook @param {Record<string, string>} written by property, as JSON
 * @returns {{properties: Record<string, unknown>, wrongs: Record<string, string>}}
 */
export function patchIn(hook, written) {
  /** @type {Record<string, unknown>} */
  const properties = {};
  /** @type {Record<string, string>} */
  const wrongs = {};
  const before = Object.fromEntries(patchable(hook).map((one) => [one.name, one.now]));
  for (const [name, text] of Object.entries(written)) {
    if (text === before[name] || text.trim() === "") continue;
    const read = jsonIn(text);
    if (read.wrong) wrongs[`properties.${name}`] = read.wrong;
    else properties[name] = read.value;
  }
  const nothing = Object.keys(properties).length === 0 && Object.keys(wrongs).length === 0;
  if (nothing) wrongs.properties = "Change a property, or let it go on as it is.";
  return { properties, wrongs };
}
