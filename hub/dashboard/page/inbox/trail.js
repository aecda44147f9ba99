/** What was said to a hook, in order. */

import { Ago } from "../parts/ago.js";
import { shown } from "../parts/changes.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { did } from "./words.js";

/** @typedef {import("../api/documents.js").Entry} Entry */

/** @param {{said: readonly Entry[], wrong: unknown}} props wrong: why it could not be read */
export function Trail({ said, wrong }) {
  return html`<section class="trail" aria-labelledby="trail">
    <h2 id="trail">What was said</h2>
    <${ProblemBox} error=${wrong} />
    ${!wrong && said.length === 0 && html`<p class="muted">Nothing yet.</p>`}
    <ol>
      ${said.map(
        (one) => html`<li key=${one.number}>
          <span>${!one.kind.startsWith("expired-") && html`<strong>${one.by}</strong> `}${did(one.kind)} <span class="muted"><${Ago} at=${one.at} />, by ${one.door}</span></span>
          ${one.reason && html`<q class="breaks">${one.reason}</q>`}
          ${one.data !== null && one.data !== undefined && html`<code class="breaks">${shown(one.data)}</code>`}
        </li>`,
      )}
    </ol>
  </section>`;
}
