/** An entry of the audit trail: what was done, in a state and in words. Pure. */

import { did } from "../inbox/words.js";

/**
 * @typedef {object} Entry
 * @property {number} number 1, 2, ... within its stack
 * @property {string} stack_id
 * @property {string | null} stack_name null: the stack was purged
 * @property {string | null} path of the resource, from the outermost stack
 * @property {string | null} point
 * @property {string | null} hook_id null: it is about no hook
 * @property {string} kind
 * @property {string} by
 * @property {string} door
 * @property {string} address
 * @property {string} at
 * @property {string} reason
 * @property {string} digest
 * @property {any} data
 * @property {string} hash
 */

/** What a kind begins with -> how it is drawn; the first that fits. @type {readonly [string, string][]} */
const DRAWN = [
  ["dry-", "dropped"],
  ["expired-", "stopped"],
  ["refused", "failed"],
  ["reject", "failed"],
  ["handed-over", "parked"],
  ["progress", "parked"],
  ["breakpoint-", "gate"],
];

/** @type {Record<string, string>} */
const BREAKPOINTS = {
  "breakpoint-added": "set a breakpoint",
  "breakpoint-removed": "took a breakpoint away",
};

/** The state whose colour and shape a kind has. @param {string} kind */
export function drawn(kind) {
  return DRAWN.find(([begins]) => kind.startsWith(begins))?.[1] ?? "done";
}

/** What somebody did, after their name. @param {Entry} entry */
export function words({ kind }) {
  return BREAKPOINTS[kind] ?? did(kind);
}

/** What it is about, besides the hook: to whom, until when, where. @param {Entry} entry */
export function about({ kind, data }) {
  if (data === null || typeof data !== "object") return "";
  if (kind === "handed-over") return `to ${data.to}`;
  if (kind === "progress") return data.deadline ? `until ${data.deadline}` : "";
  if (kind.startsWith("breakpoint-"))
    return `at ${[data.at, data.rule?.point].filter(Boolean).join(":")}`;
  if (kind === "refused") return data.decision ? `with ${data.decision}` : "";
  return "";
}

/** What was sent with it and is not said elsewhere: null where there is nothing. @param {Entry} entry */
export function sent(entry) {
  const { data } = entry;
  const none = data === null || (typeof data === "object" && Object.keys(data).length === 0);
  return none || about(entry) !== "" ? null : JSON.stringify(data, null, 2);
}

/** Unlike any other entry's. @param {Entry} entry */
export function keyOf({ stack_id, number }) {
  return `${stack_id} ${number}`;
}
