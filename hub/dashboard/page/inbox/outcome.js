/** The outcome of a hook, and notices about late answers and changed hooks. */

import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { asProblem } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { differences } from "./differences.js";
import { change } from "./drafts.js";
import { badgeStateOf, outcome } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./submit.js").DraftSignal} DraftSignal */

/** @param {{hook: Hook}} props */
export function Outcome({ hook }) {
  if (hook.state === "waiting") return null;
  return html`<div class="outcome">
    <${Badge} state=${badgeStateOf(hook)} word=${hook.state} />
    <span>${outcome(hook)} ${hook.decided_at && html`<span class="muted"><${Ago} at=${hook.decided_at} /></span>`}</span>
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
    ${error && html`<p>${error.message}. ${error.remedy}</p>`}
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
  const found = differences(seen, hook);
  return html`<div class="late" role="alert">
    <p class="reason">This hook changed since you opened it. No decision was made.</p>
    <ul>
      ${found.map((one) => html`<li key=${one.place}><code>${one.place}</code>: <del>${one.was}</del>${" → "}<ins>${one.is}</ins></li>`)}
    </ul>
    <button type="button" onClick=${() => change(draft, { seen: hook, problem: null })}>Accept the new version</button>
  </div>`;
}
