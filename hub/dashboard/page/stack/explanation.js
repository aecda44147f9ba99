/**
 * The server's explanation of a stack: unfinished nodes, drift that waits for an answer, and
 * observations that have failed or are paused.
 */

import { now } from "../api/clock.js";
import { useFetch } from "../parts/fetch.js";
import { Loading } from "../parts/loading.js";
import { ProblemBox } from "../parts/problem.js";
import { withRelativeTimes } from "../parts/relative_times.js";
import { effect, html } from "../vendor/preact.js";
import { StackDrift } from "./drift.js";
import { DriftHooks } from "./drift_hooks.js";
import { UnfinishedNodes } from "./unfinished.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/** @typedef {import("./types.js").Explanation} Explanation */

/** @param {{viewState: ViewState, debugging: Debugging}} props */
export function StackExplanation({ viewState, debugging }) {
  const { watched } = viewState;
  const { data, failure } = useFetch(
    async () => /** @type {Explanation} */ (await watched.get("/why")),
    [watched],
    (again) => onChange(watched, again),
  );
  const why = data.value;
  if (why === null) {
    return failure.value
      ? html`<${ProblemBox} error=${failure.value} />`
      : html`<${Loading} what="the unfinished nodes" />`;
  }
  const paused = why.paused.filter((one) => Date.parse(one.until) > now.value);
  return html`<${ProblemBox} error=${failure.value} />
    <${UnfinishedNodes} viewState=${viewState} nodes=${why.nodes} />
    <${DriftHooks} viewState=${viewState} debugging=${debugging} held=${why.drift} />
    <${StackDrift} viewState=${viewState} />
    <${Sentences} title="Drift without a repair" of=${why.unrepaired} />
    <${Sentences} title="Unknown states" of=${why.unknown} />
    <${Sentences} title="Paused observations" of=${paused} />`;
}

/**
 * Each event may change the reasons. An observation may end without one: then the drift is read again.
 * @param {WatchedStack} watched @param {() => void} again
 */
function onChange({ events, drift }, again) {
  return effect(() => {
    events.value;
    drift.value;
    again();
  });
}

/** Maximum number of sentences listed. */
const MAX_SENTENCES = 20;

/** @param {{title: string, of: {sentence: string}[]}} props */
function Sentences({ title, of }) {
  if (of.length === 0) return null;
  return html`<section class="column" aria-label=${title}>
    <h2>${title}</h2>
    <ul class="stack-list">
      ${of
        .slice(0, MAX_SENTENCES)
        .map(
          ({ sentence }) =>
            html`<li key=${sentence} class="breaks"><span>${withRelativeTimes(sentence)}</span></li>`,
        )}
    </ul>
    ${of.length > MAX_SENTENCES && html`<p class="muted">And ${of.length - MAX_SENTENCES} more.</p>`}
  </section>`;
}
