/** The server's explanations of why each unfinished node waits. */

import { WORDS } from "../graph/labels.js";
import { formatTime } from "../parts/ago.js";
import { useFetch } from "../parts/fetch.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./types.js").Reason} Reason */

/** Maximum number of nodes listed. */
const MAX_NODES = 60;

/** @param {{viewState: ViewState}} props */
export function UnfinishedNodes({ viewState }) {
  const { watched } = viewState;
  // Each event may change the reasons.
  const { data, failure } = useFetch(
    async () => /** @type {Reason[]} */ ((await watched.get("/why")).nodes),
    [watched],
    (again) => watched.events.subscribe(again),
  );
  const nodes = data.value;
  const more = (nodes?.length ?? 0) - MAX_NODES;
  return html`<${ProblemBox} error=${failure.value} />
    ${nodes?.length === 0 && html`<p class="muted">No unfinished or failed nodes.</p>`}
    <ul class="stack-list">
      ${nodes?.slice(0, MAX_NODES).map(
        (node) => html`<li key=${node.path + node.state} class="stack-reason">
          <${Icon} name=${stateOf(node)} label=${WORDS[stateOf(node)]} />
          <button class="plain breaks stack-sentence" onClick=${() => select(viewState, node.path)}>
            ${withClock(node.sentence)}
          </button>
        </li>`,
      )}
    </ul>
    ${more > 0 && html`<p class="muted">And ${more} more.</p>`}`;
}

/** A node parked outside of its operation waits at a hook. @param {Reason} reason */
function stateOf({ state, phase }) {
  return state === "parked" && phase !== "execute" ? "gate" : state;
}

/** The sentence with times in the browser's locale. @param {string} sentence */
function withClock(sentence) {
  return sentence.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => formatTime(time));
}

/** @param {ViewState} viewState @param {string} path */
function select(viewState, path) {
  const node = viewState.model.value?.at(path);
  if (node) viewState.select(node.key);
}
