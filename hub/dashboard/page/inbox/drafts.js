/**
 * What somebody is writing of answers, by hook. It stays while pages change, errors come and a
 * session ends; whoever signs in instead does not see it.
 */

import { session } from "../api/session.js";
import { signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./form.js").Raws} Raws */
/** What more is asked for before something is sent. @typedef {"" | "reject" | "patch" | "progress" | "hand-over"} Asks */

/**
 * seen: the hook as it was when it was looked at: its digest goes with the answer. wrongs: by place,
 * as the server says them. problem: what else went wrong. said: what came of it, in words.
 * @typedef {{owner: string, seen: Hook, reason: string, data: Raws, patch: Record<string, string>,
 *   how: string, extend: string, to: {kind: string, name: string}, note: string, asks: Asks,
 *   wrongs: Record<string, string>, problem: unknown, said: string, late: boolean, busy: boolean}} Draft
 */

/** @type {Map<string, import("../vendor/preact.js").Signal<Draft>>} */
const drafts = new Map();

/** The draft of an answer to a hook; begun where there is none. @param {Hook} hook */
export function draftOf(hook) {
  const owner = session.value?.name ?? "";
  const found = drafts.get(hook.id);
  if (found && found.peek().owner === owner) return found;
  const begun = signal(blank(owner, hook));
  drafts.set(hook.id, begun);
  return begun;
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
    asks: "",
    wrongs: {},
    problem: null,
    said: "",
    late: false,
    busy: false,
  };
}

/** @param {import("../vendor/preact.js").Signal<Draft>} draft @param {Partial<Draft>} changed */
export function change(draft, changed) {
  draft.value = { ...draft.value, ...changed };
}

/**
 * Begin anew, with the hook as it is now.
 * @param {import("../vendor/preact.js").Signal<Draft>} draft @param {Hook} hook @param {string} [said]
 */
export function startAnew(draft, hook, said = "") {
  draft.value = { ...blank(draft.value.owner, hook), said };
}

/** Whether something was written, which must not get lost. @param {Draft} draft */
export function isWritten(draft) {
  const texts = [draft.reason, draft.extend, draft.note, draft.to.name];
  const maps = [draft.data, draft.patch];
  return texts.some(Boolean) || maps.some((one) => Object.keys(one).length > 0);
}

/** Whether there is something of a hook to keep in sight, though it waits no more. @param {string} id */
export function holds(id) {
  const draft = drafts.get(id)?.value;
  return draft !== undefined && (draft.late || isWritten(draft));
}
