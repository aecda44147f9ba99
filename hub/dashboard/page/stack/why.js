/** Why a stack does not go on: the server's own sentences. */

import { clock } from "../parts/ago.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { useRead } from "../parts/read.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./shapes.js").Reason} Reason */

/** As many as somebody reads. */
const AT_MOST = 60;

/** @param {{looking: Looking}} props */
export function Why({ looking }) {
  const { watched } = looking;
  // Each event may be a reason less.
  const { found, wrong } = useRead(
    async () => /** @type {Reason[]} */ ((await watched.get("/why")).nodes),
    [watched],
    (again) => watched.events.subscribe(again),
  );
  const nodes = found.value;
  const more = (nodes?.length ?? 0) - AT_MOST;
  return html`<${ProblemBox} error=${wrong.value} />
    ${nodes?.length === 0 && html`<p class="muted">Nothing is unfinished, and nothing failed.</p>`}
    <ul class="stack-list">
      ${nodes?.slice(0, AT_MOST).map(
        (one) => html`<li key=${one.path + one.state} class="stack-reason">
          <${Icon} name=${stateOf(one)} label=${stateOf(one)} />
          <button class="plain breaks stack-sentence" onClick=${() => select(looking, one.path)}>
            ${withClock(one.sentence)}
          </button>
        </li>`,
      )}
    </ul>
    ${more > 0 && html`<p class="muted">And ${more} more.</p>`}`;
}

/** @param {Reason} reason */
function stateOf({ state, sentence }) {
  return state === "parked" && sentence.includes(" waits at ") ? "gate" : state;
}

/** A sentence with times as clocks here show them. @param {string} sentence */
function withClock(sentence) {
  return sentence.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => clock(time));
}

/** @param {Looking} looking @param {string} path */
function select(looking, path) {
  const node = looking.model.value?.at(path);
  if (node) looking.select(node.key);
}
