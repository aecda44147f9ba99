/**
 * Drafts of answers by hook. A draft survives page changes, errors and the end of a session;
 * another user does not see it.
 */

import { session } from "../api/session.js";
import { signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./form.js").Raws} Raws */
/**
 * The open panel for more input.
 * @typedef {"" | "reject" | "patch" | "progress" | "hand-over"} OpenPanel
 */

/**
 * seen: the hook as the user saw it; its digest is sent with the answer. errors: errors by place,
 * as the server names them. problem: any other error. result: the result as text.
 * @typedef {{owner: string, seen: Hook, reason: string, data: Raws, patch: Record<string, string>,
 *   how: string, extend: string, to: {kind: string, name: string}, note: string, panel: OpenPanel,
 *   errors: Record<string, string>, problem: unknown, result: string, late: boolean, busy: boolean}} Draft
 */

/** @type {Map<string, import("../vendor/preact.js").Signal<Draft>>} */
const drafts = new Map();

/** The draft for a hook; created if there is none. @param {Hook} hook */
export function draftOf(hook) {
  const owner = session.value?.name ?? "";
  const existing = drafts.get(hook.id);
  if (existing && existing.peek().owner === owner) return existing;
  const created = signal(blank(owner, hook));
  drafts.set(hook.id, created);
  return created;
}

/** @param {string} owner @param {Hook} hook @returns {Draft} */
function blank(owner, hook) {
  return {
    owner,
    seen: hook,
    reason: "",
    data: {},
    patch: {},
    how: "over",
    extend: "",
    to: { kind: "user", name: "" },
    note: "",
    panel: "",
    errors: {},
    problem: null,
    result: "",
    late: false,
    busy: false,
  };
}

/** @param {import("../vendor/preact.js").Signal<Draft>} draft @param {Partial<Draft>} changed */
export function change(draft, changed) {
  draft.value = { ...draft.value, ...changed };
}

/**
 * Resets the draft to the current version of the hook.
 * @param {import("../vendor/preact.js").Signal<Draft>} draft @param {Hook} hook @param {string} [result]
 */
export function resetDraft(draft, hook, result = "") {
  draft.value = { ...blank(draft.value.owner, hook), result };
}

/** Whether the draft has content that must not be lost. @param {Draft} draft */
export function hasContent(draft) {
  const texts = [draft.reason, draft.extend, draft.note, draft.to.name];
  const maps = [draft.data, draft.patch];
  return texts.some(Boolean) || maps.some((values) => Object.keys(values).length > 0);
}

/** Whether a hook stays visible after it ended because of its draft. @param {string} id */
export function keepsVisible(id) {
  const draft = drafts.get(id)?.value;
  return draft !== undefined && (draft.late || hasContent(draft));
}
