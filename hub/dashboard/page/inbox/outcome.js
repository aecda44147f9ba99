/** How a hook ended, and what is said to who was late, or looked at something else. */

import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { asProblem } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { differences } from "./differences.js";
import { change } from "./drafts.js";
import { looksOf, outcome } from "./words.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./sending.js").DraftSignal} DraftSignal */

/** @param {{hook: Hook}} props */
export function Outcome({ hook }) {
  if (hook.state === "waiting") return null;
  return html`<div class="outcome">
    <${Badge} state=${looksOf(hook)} word=${hook.state} />
    <span>${outcome(hook)} ${hook.decided_at && html`<span class="muted"><${Ago} at=${hook.decided_at} /></span>`}</span>
    ${hook.state === "answered" && hook.reason && html`<q class="breaks">${hook.reason}</q>`}
  </div>`;
}

/** An answer that was sent too late, or that somebody else gave first. @param {{hook: Hook, draft: DraftSignal}} props */
export function Late({ hook, draft }) {
  const { problem, late } = draft.value;
  const said = late && hook.state === "waiting" ? asProblem(problem) : null;
  return html`<div class="late" role="alert">
    <p class="reason">${late ? "Your answer came too late: it decided nothing." : "This was decided while you wrote."}</p>
    ${said && html`<p>${said.message}. ${said.remedy}</p>`}
    <p>What you wrote was not kept by the server. It stays here until you dismiss it.</p>
  </div>`;
}

/** What waits is not what was looked at. @param {{hook: Hook, draft: DraftSignal}} props */
export function Shifted({ hook, draft }) {
  const { seen } = draft.value;
  if (seen.digest === hook.digest) return null;
  const found = differences(seen, hook);
  return html`<div class="late" role="alert">
    <p class="reason">What waits is not what you looked at. Nothing was decided.</p>
    <ul>
      ${found.map((one) => html`<li key=${one.place}><code>${one.place}</code>: <del>${one.was}</del>${" → "}<ins>${one.is}</ins></li>`)}
    </ul>
    <button type="button" onClick=${() => change(draft, { seen: hook, problem: null })}>I have seen it</button>
  </div>`;
}
