/**
 * Drafts of answers by hook. A draft survives page changes, a reload, errors and the end of a
 * session; another user does not see it. The browser keeps it for the window, without secrets.
 */

import { session } from "../api/session.js";
import { signal } from "../vendor/preact.js";
import { formOf } from "./form.js";
import { patchableProperties } from "./patch.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./form.js").Raws} Raws */
/**
 * The open panel for more input.
 * @typedef {"" | "reject" | "patch" | "progress" | "ignore" | "hand-over"} OpenPanel
 */

/**
 * seen: the hook as the user saw it; its digest is sent with the answer. errors: errors by place,
 * as the server names them. refusal: the server's error whose findings are in `errors`, all of them.
 * problem: any other error. result: the result as text.
 * @typedef {{owner: string, seen: Hook, reason: string, data: Raws, patch: Record<string, string>,
 *   how: string, extend: string, ignoreFor: string, to: {kind: string, name: string}, note: string, panel: OpenPanel,
 *   errors: Record<string, string>, refusal: import("../api/client.js").Problem | null, problem: unknown, result: string, late: boolean, busy: boolean}} Draft
 */

/** @type {Map<string, import("../vendor/preact.js").Signal<Draft>>} */
const drafts = new Map();

/** The draft for a hook; created if there is none. @param {Hook} hook */
export function draftOf(hook) {
  const owner = session.value?.name ?? "";
  const existing = drafts.get(hook.id);
  if (existing && existing.peek().owner === owner) return existing;
  const created = signal({ ...blank(owner, hook), ...storedDraft(owner, hook) });
  drafts.set(hook.id, created);
  return created;
}

/** Storage key of the drafts. */
const KEY = "headgate.drafts";
/** @typedef {Pick<Draft, "owner" | "seen" | "reason" | "data" | "patch" | "how" | "extend" | "ignoreFor" | "to" | "note" | "panel">} StoredDraft */

/** @returns {Record<string, StoredDraft>} by hook */
function storedDrafts() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
  } catch {
    return {};
  }
}

/** @param {string} owner @param {Hook} hook @returns {Partial<Draft>} */
function storedDraft(owner, hook) {
  const found = storedDrafts()[hook.id];
  return found?.owner === owner ? found : {};
}

/** @param {string} id of a hook @param {Draft} draft */
function storeDraft(id, draft) {
  const { [id]: _, ...others } = storedDrafts();
  const { owner, seen, reason, data, patch, how, extend, ignoreFor, to, note, panel } = draft;
  const hidden = new Set(hiddenPaths(seen));
  const stored = {
    owner,
    seen,
    reason,
    how,
    extend,
    ignoreFor,
    to,
    note,
    panel,
    data: without(data, hidden),
    patch: without(patch, hiddenProperties(seen)),
  };
  const next = hasContent(draft) && !draft.late ? { ...others, [id]: stored } : others;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // Without room or permission, the draft lasts as long as the page.
  }
}

/** The fields for secrets in the data of an answer. @param {Hook} hook @returns {string[]} */
function hiddenPaths({ ask }) {
  /** @param {import("./form.js").Control} control @returns {string[]} */
  const paths = (control) =>
    control.kind === "group"
      ? control.children.flatMap(paths)
      : control.input === "password" || control.kind === "json"
        ? [control.path]
        : [];
  return ask ? paths(formOf(ask)) : [];
}

/** @param {Hook} hook @returns {ReadonlySet<string>} */
function hiddenProperties(hook) {
  const properties = patchableProperties(hook);
  return new Set(properties.filter((item) => item.hidden).map((item) => item.name));
}

/** @template T @param {Record<string, T>} values @param {ReadonlySet<string>} names @returns {Record<string, T>} */
function without(values, names) {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.has(name)));
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
    ignoreFor: "",
    to: { kind: "user", name: "" },
    note: "",
    panel: "",
    errors: {},
    refusal: null,
    problem: null,
    result: "",
    late: false,
    busy: false,
  };
}

/** @param {import("../vendor/preact.js").Signal<Draft>} draft @param {Partial<Draft>} changed */
export function change(draft, changed) {
  draft.value = { ...draft.value, ...changed };
  storeDraft(draft.value.seen.id, draft.value);
}

/**
 * Resets the draft to the current version of the hook.
 * @param {import("../vendor/preact.js").Signal<Draft>} draft @param {Hook} hook @param {string} [result]
 */
export function resetDraft(draft, hook, result = "") {
  draft.value = { ...blank(draft.value.owner, hook), result };
  storeDraft(hook.id, draft.value);
}

/** Whether the draft has content that must not be lost. @param {Draft} draft */
export function hasContent(draft) {
  const texts = [draft.reason, draft.extend, draft.ignoreFor, draft.note, draft.to.name];
  const maps = [draft.data, draft.patch];
  return texts.some(Boolean) || maps.some((values) => Object.keys(values).length > 0);
}

/** Whether a hook stays visible after it ended because of its draft. @param {string} id */
export function keepsVisible(id) {
  const draft = drafts.get(id)?.value;
  return draft !== undefined && (draft.late || hasContent(draft));
}
