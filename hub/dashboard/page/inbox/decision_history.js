/** The decision history of a hook: fetched, and shown as a list. */

import { call, isAborted } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { displayText } from "../parts/changes.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { decisionText } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Entry} Entry */

/** @param {{history: readonly Entry[], failure: unknown}} props failure: error of fetching */
export function DecisionHistory({ history, failure }) {
  return html`<section class="decision-history" aria-labelledby="decision-history">
    <h2 id="decision-history">Decision history</h2>
    <${ProblemBox} error=${failure} />
    ${!failure && history.length === 0 && html`<p class="muted">No entries yet.</p>`}
    <ol>
      ${history.map(
        (item) => html`<li key=${item.number}>
          <span>${!item.kind.startsWith("expired-") && html`<strong>${item.by}</strong> `}${decisionText(item.kind)} <span class="muted"><${Ago} at=${item.at} /> via ${item.channel}</span></span>
          ${item.reason && html`<q class="breaks">${item.reason}</q>`}
          ${item.data !== null && item.data !== undefined && html`<code class="breaks">${displayText(item.data)}</code>`}
        </li>`,
      )}
    </ol>
  </section>`;
}

/**
 * The decision history of a hook; fetched again when the hook changes.
 * @param {string} project @param {Hook} hook @param {boolean} always
 */
export function useDecisionHistory(project, hook, always) {
  const history = useSignal(/** @type {readonly Entry[]} */ ([]));
  const failure = useSignal(/** @type {unknown} */ (null));
  const needed = always || hook.assigned !== null;
  useEffect(() => {
    if (!needed) return;
    const request = new AbortController();
    call("GET", project, `/hooks/${hook.id}/decisions`, undefined, { signal: request.signal })
      .then((found) => {
        history.value = found.decisions;
        failure.value = null;
      })
      .catch((error) => {
        if (!isAborted(error)) failure.value = error;
      });
    return () => request.abort();
  }, [project, hook, needed]);
  return { history: history.value, failure: failure.value };
}
