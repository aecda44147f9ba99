/** The decision history of a hook. */

import { Ago } from "../parts/ago.js";
import { shown } from "../parts/changes.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { decisionText } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Entry} Entry */

/** @param {{history: readonly Entry[], wrong: unknown}} props wrong: error of fetching */
export function DecisionHistory({ history, wrong }) {
  return html`<section class="trail" aria-labelledby="trail">
    <h2 id="trail">Decision history</h2>
    <${ProblemBox} error=${wrong} />
    ${!wrong && history.length === 0 && html`<p class="muted">No entries yet.</p>`}
    <ol>
      ${history.map(
        (one) => html`<li key=${one.number}>
          <span>${!one.kind.startsWith("expired-") && html`<strong>${one.by}</strong> `}${decisionText(one.kind)} <span class="muted"><${Ago} at=${one.at} /> via ${one.door}</span></span>
          ${one.reason && html`<q class="breaks">${one.reason}</q>`}
          ${one.data !== null && one.data !== undefined && html`<code class="breaks">${shown(one.data)}</code>`}
        </li>`,
      )}
    </ol>
  </section>`;
}
