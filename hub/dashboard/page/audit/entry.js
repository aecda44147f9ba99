/** An entry of the audit log: its badge and text. Pure. */

import { decisionText } from "../inbox/hook_text.js";

/**
 * @typedef {object} Entry
 * @property {number} number 1, 2, ... within its stack
 * @property {string} stack_id
 * @property {string | null} stack_name null: the stack was purged
 * @property {string | null} path of the resource from the root stack
 * @property {string | null} point
 * @property {string | null} hook_id null: not about a hook
 * @property {string} kind
 * @property {string} by
 * @property {string} channel
 * @property {string} address
 * @property {string} at
 * @property {string} reason
 * @property {string} digest
 * @property {any} data
 * @property {string} hash
 */

/**
 * Prefix of a kind and its badge state; the first match wins.
 * @type {readonly [string, string][]}
 */
const BADGE_STATES = [
  ["dry-", "dropped"],
  ["expired-", "stopped"],
  ["refused", "failed"],
  ["reject", "failed"],
  ["handed-over", "parked"],
  ["progress", "parked"],
  ["breakpoint-", "gate"],
];

/** @type {Record<string, string>} */
const CHANGES = {
  "breakpoint-added": "set a breakpoint",
  "breakpoint-removed": "removed a breakpoint",
  "observation-credential-set": "set the observation credential",
  "observation-credential-deleted": "deleted the observation credential",
};

/** The badge state of a kind. @param {string} kind */
export function badgeStateOf(kind) {
  return BADGE_STATES.find(([begins]) => kind.startsWith(begins))?.[1] ?? "done";
}

/** What the user did; follows the user's name. @param {Entry} entry */
export function entryText({ kind }) {
  return CHANGES[kind] ?? decisionText(kind);
}

/** Whether an entry belongs to a stack. @param {{kind: string}} entry */
export function isOfStack({ kind }) {
  return !kind.startsWith("observation-credential-");
}

/** Details besides the hook: the new approver, deadline or breakpoint. @param {Entry} entry */
export function entryDetails({ kind, data }) {
  if (data === null || typeof data !== "object") return "";
  if (kind === "handed-over") return `to ${data.to}`;
  if (kind === "progress") return data.deadline ? `until ${data.deadline}` : "";
  if (kind.startsWith("breakpoint-"))
    return `at ${[data.at, data.rule?.point].filter(Boolean).join(":")}`;
  if (!isOfStack({ kind })) return data.application_credential_id;
  if (kind === "refused") return data.decision ? `with ${data.decision}` : "";
  return "";
}

/** Data not shown elsewhere, as JSON; null if there is none. @param {Entry} entry */
export function entryData(entry) {
  const { data } = entry;
  const none = data === null || (typeof data === "object" && Object.keys(data).length === 0);
  return none || entryDetails(entry) !== "" ? null : JSON.stringify(data, null, 2);
}

/** A unique key of an entry. @param {Entry} entry */
export function entryKey({ stack_id, number }) {
  return `${stack_id} ${number}`;
}
