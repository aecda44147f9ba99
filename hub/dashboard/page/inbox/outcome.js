/** The outcome of a hook, and notices about late answers and changed hooks with the differences. */

import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { displayText } from "../parts/changes.js";
import { withCode } from "../parts/code_text.js";
import { asProblem } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { change } from "./drafts.js";
import { badgeStateOf, outcomeText } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./submit.js").DraftSignal} DraftSignal */

/** @param {{hook: Hook}} props */
export function Outcome({ hook }) {
  if (hook.state === "waiting") return null;
  return html`<div class="outcome">
    <${Badge} state=${badgeStateOf(hook)} word=${hook.state} />
    <span>${outcomeText(hook)} ${hook.decided_at && html`<span class="muted"><${Ago} at=${hook.decided_at} /></span>`}</span>
    ${hook.state === "answered" && hook.reason && html`<q class="breaks">${hook.reason}</q>`}
  </div>`;
}

/**
 * Notice that the hook was decided before the user answered.
 * @param {{hook: Hook, draft: DraftSignal}} props
 */
export function LateNotice({ hook, draft }) {
  const { problem, late } = draft.value;
  const error = late && hook.state === "waiting" ? asProblem(problem) : null;
  return html`<div class="late" role="alert">
    <p class="reason">${late ? "Your answer came too late and was not applied." : "This hook was decided while you were writing."}</p>
    ${error && html`<p>${withCode(error.message)}. ${withCode(error.remedy)}</p>`}
    <p>Your draft is not saved on the server. It stays here until you discard it.</p>
  </div>`;
}

/**
 * Notice that the hook changed since the user opened it.
 * @param {{hook: Hook, draft: DraftSignal}} props
 */
export function ChangedNotice({ hook, draft }) {
  const { seen } = draft.value;
  if (seen.digest === hook.digest) return null;
  const result = differences(seen, hook);
  return html`<div class="late" role="alert">
    <p class="reason">This hook changed since you opened it. No decision was made.</p>
    <ul>
      ${result.map((item) => html`<li key=${item.place}><code>${item.place}</code>: <del>${item.before}</del>${" → "}<ins>${item.after}</ins></li>`)}
    </ul>
    <button type="button" onClick=${() => change(draft, { seen: hook, problem: null })}>Accept the new version</button>
  </div>`;
}

/** Depth to which values are compared key by key. */
const MAX_DEPTH = 3;

/** @param {Hook} before @param {Hook} after @returns {{place: string, before: string, after: string}[]} */
export function differences(before, after) {
  return compare(decisionBasis(before), decisionBasis(after), "", 0);
}

/** The parts of a hook that a decision depends on. @param {Hook} hook */
function decisionBasis(hook) {
  const { path, point, resource, change, answers } = hook;
  return { path, point, resource, change, answers };
}

/**
 * @param {any} before @param {any} after @param {string} place @param {number} depth
 * @returns {{place: string, before: string, after: string}[]}
 */
function compare(before, after, place, depth) {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (depth >= MAX_DEPTH || !isMap(before) || !isMap(after))
    return [{ place, before: displayText(before) || "none", after: displayText(after) || "none" }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) =>
    compare(before[name], after[name], place ? `${place}.${name}` : name, depth + 1),
  );
}

/** @param {unknown} value */
function isMap(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
