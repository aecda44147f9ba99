/** The server's explanations of why each unfinished node waits. */

import { WORDS } from "../graph/labels.js";
import { clock } from "../parts/ago.js";
import { useFetched } from "../parts/fetched.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./types.js").Reason} Reason */

/** Maximum number of nodes listed. */
const AT_MOST = 60;

/** @param {{viewState: ViewState}} props */
export function UnfinishedNodes({ viewState }) {
  const { watched } = viewState;
  // Each event may change the reasons.
  const { found, wrong } = useFetched(
    async () => /** @type {Reason[]} */ ((await watched.get("/why")).nodes),
    [watched],
    (again) => watched.events.subscribe(again),
  );
  const nodes = found.value;
  const more = (nodes?.length ?? 0) - AT_MOST;
  return html`<${ProblemBox} error=${wrong.value} />
    ${nodes?.length === 0 && html`<p class="muted">No unfinished or failed nodes.</p>`}
    <ul class="stack-list">
      ${nodes?.slice(0, AT_MOST).map(
        (one) => html`<li key=${one.path + one.state} class="stack-reason">
          <${Icon} name=${stateOf(one)} label=${WORDS[stateOf(one)]} />
          <button class="plain breaks stack-sentence" onClick=${() => select(viewState, one.path)}>
            ${withClock(one.sentence)}
          </button>
        </li>`,
      )}
    </ul>
    ${more > 0 && html`<p class="muted">And ${more} more.</p>`}`;
}

/** A node parked outside of its operation waits at a hook. @param {Reason} reason */
function stateOf({ state, phase }) {
  return state === "parked" && phase !== "act" ? "gate" : state;
}

/** The sentence with times in the browser's locale. @param {string} sentence */
function withClock(sentence) {
  return sentence.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => clock(time));
}

/** @param {ViewState} viewState @param {string} path */
function select(viewState, path) {
  const node = viewState.model.value?.at(path);
  if (node) viewState.select(node.key);
}
