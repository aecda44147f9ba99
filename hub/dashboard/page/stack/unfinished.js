/** Why each unfinished node waits. */

import { WORDS } from "../graph/labels.js";
import { Icon } from "../parts/icon.js";
import { withRelativeTimes } from "../parts/relative_times.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./types.js").Reason} Reason */

/** Maximum number of nodes listed. */
const MAX_NODES = 60;
/** States of nodes that only wait for others. @type {ReadonlySet<string>} */
const BEHIND = new Set(["waiting", "ready"]);

/** nodes: with the sentences of the server. @param {{viewState: ViewState, nodes: Reason[]}} props */
export function UnfinishedNodes({ viewState, nodes }) {
  // The waiting hooks are above, with their answers.
  const others = nodes.filter((node) => stateOf(node) !== "gate");
  const behind = others.filter((node) => BEHIND.has(node.state));
  const active = others.filter((node) => !BEHIND.has(node.state));
  return html`${nodes.length === 0 && html`<p class="muted">No unfinished or failed nodes.</p>`}
    ${
      active.length > 0 &&
      html`<section class="column" aria-label="In progress or failed">
        <h2>In progress or failed</h2>
        <${Reasons} viewState=${viewState} nodes=${active} />
      </section>`
    }
    ${
      behind.length > 0 &&
      html`<details class="stack-values" open=${active.length + viewState.nodeHooks.value.length === 0}>
        <summary><h3>${behind.length} not started</h3></summary>
        <${Reasons} viewState=${viewState} nodes=${behind} />
      </details>`
    }`;
}

/** @param {{viewState: ViewState, nodes: Reason[]}} props */
function Reasons({ viewState, nodes }) {
  return html`<ul class="stack-list">
      ${nodes.slice(0, MAX_NODES).map(
        (node) => html`<li key=${node.path + node.state} class="stack-reason">
          <${Icon} name=${stateOf(node)} label=${WORDS[stateOf(node)]} />
          <button class="plain breaks stack-sentence" onClick=${() => select(viewState, node.path)}>
            <span>${withRelativeTimes(node.sentence)}</span>
          </button>
        </li>`,
      )}
    </ul>
    ${nodes.length > MAX_NODES && html`<p class="muted">And ${nodes.length - MAX_NODES} more.</p>`}`;
}

/** A node parked outside of its operation waits at a hook. @param {Reason} reason */
function stateOf({ state, phase }) {
  return state === "parked" && phase !== "execute" ? "gate" : state;
}

/** @param {ViewState} viewState @param {string} path */
function select(viewState, path) {
  const node = viewState.model.value?.at(path);
  if (node) viewState.select(node.key);
}
