/** Answering several hooks at once: selection, and one confirmation with the list. */

import { call } from "../api/client.js";
import { session } from "../api/session.js";
import { notify } from "../app/notices.js";
import { Breakable } from "../parts/breakable.js";
import { Dialog, useMounted } from "../parts/dialog.js";
import { Field } from "../parts/field.js";
import { asProblem } from "../parts/problem.js";
import { html, signal, useSignal } from "../vendor/preact.js";
import { dataFormFor } from "./data_form.js";
import { pointInWords, subject } from "./hook_text.js";
import { isForUser, offeredDecisions } from "./rights.js";
import { storeHook } from "./waiting.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {"continue" | "reject"} BulkDecision */

/** IDs of the selected hooks. @type {import("../vendor/preact.js").Signal<ReadonlySet<string>>} */
const selected = signal(new Set());
/** Answers sent at the same time. */
const PARALLEL = 4;
/** @type {Record<BulkDecision, string>} */
const WORDS = { continue: "Continue", reject: "Reject" };

/** Whether a hook can be answered without data of its own. @param {Hook} hook */
function isSelectable(hook) {
  return isForUser(hook, session.value) && dataFormFor(hook) === null;
}

/** @param {string} id @param {boolean} on */
function select(id, on) {
  const next = new Set(selected.value);
  if (on) next.add(id);
  else next.delete(id);
  selected.value = next;
}

/** The checkbox of a hook. @param {{hook: Hook}} props */
export function SelectHook({ hook }) {
  // Without a checkbox, its room keeps the rows aligned.
  if (!isSelectable(hook)) return html`<span class="hook-select"></span>`;
  return html`<input type="checkbox" class="hook-select" checked=${selected.value.has(hook.id)}
    aria-label=${`Select ${subject(hook)} ${pointInWords(hook.point)} in ${hook.root_stack_name}`}
    onChange=${(/** @type {{currentTarget: HTMLInputElement}} */ event) =>
      select(hook.id, event.currentTarget.checked)} />`;
}

/** hooks: those of the list. @param {{project: string, hooks: readonly Hook[]}} props */
export function BulkActions({ project, hooks }) {
  const asking = useSignal(
    /** @type {{decision: BulkDecision, hooks: readonly Hook[]} | null} */ (null),
  );
  const selectable = hooks.filter(isSelectable);
  const chosen = selectable.filter((hook) => selected.value.has(hook.id));
  if (selectable.length < 2 && chosen.length === 0 && !asking.value) return null;
  const all = chosen.length === selectable.length;
  const toggleAll = () => {
    selected.value = new Set(all ? [] : selectable.map((hook) => hook.id));
  };
  return html`<label class="row" title="All that need no data of their own">
      <input type="checkbox" checked=${all} onChange=${toggleAll} />
      Select all ${selectable.length}
    </label>
    ${
      chosen.length > 0 &&
      html`<span role="status">${chosen.length} selected</span>
        ${(/** @type {BulkDecision[]} */ (["continue", "reject"])).map((decision) => {
          const able = chosen.filter((hook) => allows(hook, decision));
          if (able.length === 0) return null;
          return html`<button key=${decision} class=${decision === "reject" ? "danger" : "first"}
            onClick=${() => {
              asking.value = { decision, hooks: able };
            }}>${WORDS[decision]} ${able.length}…</button>`;
        })}`
    }
    ${
      asking.value &&
      html`<${BulkDialog} project=${project} ...${asking.value} close=${() => {
        asking.value = null;
      }} />`
    }`;
}

/** @param {Hook} hook @param {BulkDecision} decision */
function allows(hook, decision) {
  return offeredDecisions(hook, session.value).includes(decision);
}

/**
 * hooks: as they are shown; a hook that changes in the meantime is not answered.
 * @param {{project: string, decision: BulkDecision, hooks: readonly Hook[], close: () => void}} props
 */
function BulkDialog({ project, decision, hooks, close }) {
  const reason = useSignal("");
  const busy = useSignal(false);
  const failures = useSignal(/** @type {ReadonlyMap<string, string>} */ (new Map()));
  const answered = useSignal(/** @type {ReadonlySet<string>} */ (new Set()));
  const mounted = useMounted();
  const left = hooks.filter((hook) => !answered.value.has(hook.id));
  /** @param {Hook} hook @returns {Promise<[Hook, string]>} */
  async function send(hook) {
    const text = reason.value.trim();
    const body = { decision, digest: hook.digest, ...(text ? { reason: text } : {}) };
    try {
      storeHook(await call("POST", project, `/hooks/${hook.id}/signal`, body));
      select(hook.id, false);
      return [hook, ""];
    } catch (error) {
      return [hook, asProblem(error).message];
    }
  }
  async function sendAll() {
    busy.value = true;
    failures.value = new Map();
    /** @type {[Hook, string][]} */
    const results = [];
    for (let at = 0; at < left.length; at += PARALLEL)
      results.push(...(await Promise.all(left.slice(at, at + PARALLEL).map(send))));
    const failed = results.filter(([, why]) => why !== "");
    const done = results.length - failed.length;
    if (done > 0) notify(`Answered ${done} ${done === 1 ? "hook" : "hooks"}: ${decision}.`, "good");
    if (!mounted.current) return;
    busy.value = false;
    if (failed.length === 0) return close();
    answered.value = new Set([
      ...answered.value,
      ...results.filter(([, why]) => why === "").map(([hook]) => hook.id),
    ]);
    failures.value = new Map(failed.map(([hook, why]) => [hook.id, why]));
  }
  const many = left.length === 1 ? "1 hook" : `${left.length} hooks`;
  return html`<${Dialog} title=${`${WORDS[decision]} ${many}?`} onClose=${close}>
    ${decision === "reject" && html`<p>Each operation fails. This cannot be undone.</p>`}
    ${failures.value.size > 0 && html`<p class="problem" role="alert">${failures.value.size} not answered; the reasons are below.</p>`}
    <ul class="bulk-list">
      ${left.map(
        (hook) => html`<li key=${hook.id}>
          <code class="breaks"><${Breakable} text=${subject(hook)} /></code> ${pointInWords(hook.point)} in ${hook.root_stack_name}
          ${failures.value.has(hook.id) && html`<span class="wrong">${failures.value.get(hook.id)}</span>`}
        </li>`,
      )}
    </ul>
    <${Field} label="Reason (optional)">
      ${(
        /** @type {object} */ needs,
      ) => html`<textarea ...${needs} rows="2" maxlength="4000" value=${reason.value}
        onInput=${(/** @type {{currentTarget: HTMLTextAreaElement}} */ event) => {
          reason.value = event.currentTarget.value;
        }}></textarea>`}
    <//>
    <div class="acts">
      <button onClick=${close}>Cancel</button>
      <button class=${decision === "reject" ? "danger" : "first"} disabled=${busy.value} onClick=${sendAll}>
        ${WORDS[decision]} ${many}</button>
    </div>
  <//>`;
}
