/** The drift of a resource and of a stack: what differs from the recorded state, and its repair. */

import { now } from "../api/clock.js";
import { Ago } from "../parts/ago.js";
import { Changes } from "../parts/changes.js";
import { driftText } from "../parts/drift_text.js";
import { withRelativeTimes } from "../parts/relative_times.js";
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
    <p>${driftText(drift)} First observed <${Ago} at=${drift.since} />${foundBy(drift)}.</p>
    ${
      drift.differences.length > 0 &&
      html`<p class="muted">Desired and observed values:</p>
        <${Changes} changes=${asChanges(drift)} />`
    }
    ${drift.unrepaired && html`<p class="breaks">Not repaired: ${drift.unrepaired}.</p>`}
    ${drift.state !== "unknown" && html`<${ConvergePlan} watched=${viewState.watched} />`}
  </section>`;
}

/** Maximum number of resources listed. */
const MAX_RESOURCES = 20;

/** The resources of the stack that differ. @param {{viewState: ViewState}} props */
export function StackDrift({ viewState }) {
  const { watched, past } = viewState;
  const found = [...watched.drift.value.values()].filter(({ state }) => state !== "unknown");
  if (past.value || found.length === 0) return null;
  return html`<section class="column" aria-label="Drift">
    <h2>Drift</h2>
    <ul class="stack-list">
      ${found
        .slice(0, MAX_RESOURCES)
        .map(
          (drift) =>
            html`<li key=${drift.path}><code class="breaks">${drift.path}</code> <span class="drift-badge">drift: ${drift.state}</span></li>`,
        )}
    </ul>
    ${found.length > MAX_RESOURCES && html`<p class="muted">And ${found.length - MAX_RESOURCES} more.</p>`}
    <${ConvergePlan} watched=${watched} />
  </section>`;
}

/** Which observations wait for a provider, until when and why. @param {{viewState: ViewState}} props */
export function PausedObservations({ viewState }) {
  const paused = viewState.watched.paused.value.filter((one) => Date.parse(one.until) > now.value);
  if (paused.length === 0) return null;
  return html`<section class="column" aria-label="Paused observations">
    <h2>Paused observations</h2>
    <ul class="stack-list">
      ${paused.map(
        ({ sentence }) =>
          html`<li key=${sentence} class="breaks"><span>${withRelativeTimes(sentence)}</span></li>`,
      )}
    </ul>
  </section>`;
}

/** @param {{viewState: ViewState, path: string}} props */
export function DriftBadge({ viewState, path }) {
  const drift = viewState.watched.drift.value.get(path);
  if (!drift || drift.state === "unknown") return null;
  return html`<span class="drift-badge">drift: ${drift.state}</span>`;
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

/** @param {DriftedResource} drift */
function asChanges({ differences }) {
  return Object.fromEntries(
    differences.map(({ path, desired, observed }) => [path, { from: desired, to: observed }]),
  );
}
