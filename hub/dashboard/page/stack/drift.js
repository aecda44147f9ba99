/** The drift of a resource and of a stack: what differs from the recorded state, and its repair. */

import { Ago } from "../parts/ago.js";
import { Changes } from "../parts/changes.js";
import { badgeText, driftText } from "../parts/drift_text.js";
import { html } from "../vendor/preact.js";
import { ConvergePlan } from "./converge.js";

/** @typedef {import("./types.js").DriftedResource} DriftedResource */
/** @typedef {import("./view_state.js").ViewState} ViewState */

/** @param {{viewState: ViewState, path: string}} props */
export function DriftDetails({ viewState, path }) {
  const drift = viewState.past.value ? null : viewState.watched.drift.value.get(path);
  if (!drift) return null;
  return html`<section class="column">
    <h3>Drift</h3>
    <p>${driftText(drift)} First observed <${Ago} at=${drift.since} />${foundBy(drift)}.
      ${" "}Last observed <${Ago} at=${drift.observed_at} />.</p>
    <${Differences} of=${drift} />
    ${
      drift.last_known &&
      html`<p>Last known: ${driftText(drift.last_known)} First observed <${Ago} at=${drift.last_known.since} />.</p>
        <${Differences} of=${drift.last_known} />`
    }
    ${drift.unrepaired && html`<p class="breaks">Not repaired: ${drift.unrepaired}.</p>`}
    ${drift.state !== "unknown" && html`<${ConvergePlan} watched=${viewState.watched} />`}
  </section>`;
}

/** @param {{of: Pick<DriftedResource, "differences">}} props */
function Differences({ of }) {
  if (of.differences.length === 0) return null;
  return html`<p class="muted">Desired and observed values:</p>
    <${Changes} changes=${asChanges(of)} />`;
}

/** Maximum number of resources listed. */
const MAX_RESOURCES = 20;

/** The resources of the stack that differ. @param {{viewState: ViewState}} props */
export function StackDrift({ viewState }) {
  const { watched, past } = viewState;
  const found = [...watched.drift.value.values()].filter(badgeText);
  if (past.value || found.length === 0) return null;
  return html`<section class="column" aria-label="Drift">
    <h2>Drift</h2>
    <ul class="stack-list">
      ${found
        .slice(0, MAX_RESOURCES)
        .map(
          (drift) =>
            html`<li key=${drift.path}><code class="breaks">${drift.path}</code> <span class="drift-badge">drift: ${badgeText(drift)}</span></li>`,
        )}
    </ul>
    ${found.length > MAX_RESOURCES && html`<p class="muted">And ${found.length - MAX_RESOURCES} more.</p>`}
    ${found.some(({ state }) => state !== "unknown") && html`<${ConvergePlan} watched=${watched} />`}
  </section>`;
}

/** @param {{viewState: ViewState, path: string}} props */
export function DriftBadge({ viewState, path }) {
  const drift = viewState.watched.drift.value.get(path);
  const text = drift && badgeText(drift);
  return text ? html`<span class="drift-badge">drift: ${text}</span>` : null;
}

const CAUSES = {
  request: "on request",
  policy: "at the interval of the policy",
  report: "after a report of a change",
};

/** @param {DriftedResource} drift */
function foundBy({ found_by }) {
  return found_by ? `, ${CAUSES[found_by]}` : "";
}

/** @param {Pick<DriftedResource, "differences">} drift */
function asChanges({ differences }) {
  return Object.fromEntries(
    differences.map(({ path, desired, observed }) => [path, { from: desired, to: observed }]),
  );
}
