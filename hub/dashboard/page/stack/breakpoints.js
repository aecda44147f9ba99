/** Where a node is held, and by whom; set and cleared. */

import { may } from "../api/session.js";
import { html } from "../vendor/preact.js";
import { pointOf } from "./debugging.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./shapes.js").Inspected} Inspected */
/** @typedef {import("../graph/shapes.js").GraphNode} GraphNode */

/** @type {Record<string, string>} */
const ORIGINS = {
  live: "set on the live stack",
  request: "of this change",
  environment: "of the environment",
  template: "of the template",
  operator: "the operator's",
};

/** @param {{debugging: Debugging, node: GraphNode, seen: Inspected | null}} props */
export function Breakpoints({ debugging, node, seen }) {
  const { looking } = debugging;
  const model = looking.model.value;
  if (!model) return null;
  const holds = model.progress(node.key).value.breakpoints;
  const readonly = looking.past.value !== null || !may("write");
  return html`<section class="column">
    <h3>Breakpoints</h3>
    ${
      !readonly &&
      html`<div class="row">
        ${["pre", "post"].map((side) => html`<${Side} key=${side} debugging=${debugging} node=${node} side=${side} />`)}
      </div>`
    }
    ${holds.length === 0 && html`<p class="muted">Nothing holds it.</p>`}
    <ul class="stack-list">
      ${holds.map((point) => html`<li key=${point}><code>${point}</code>${" "}<${Origin} seen=${seen} point=${point} /></li>`)}
    </ul>
  </section>`;
}

/** @param {{debugging: Debugging, node: GraphNode, side: "pre" | "post"}} props */
function Side({ debugging, node, side }) {
  const { looking, busy } = debugging;
  const point = pointOf(node, side, looking);
  const on = looking.model.value?.progress(node.key).value.breakpoints.includes(point) ?? false;
  return html`<button aria-pressed=${on} disabled=${busy.value} onClick=${() => debugging.mark(node, side, !on)}>
    ${side === "pre" ? "Before" : "After"}<span class="only-read"> ${node.name}</span>
  </button>`;
}

/** @param {{seen: Inspected | null, point: string}} props */
function Origin({ seen, point }) {
  const found = seen?.breakpoints?.find((one) => one.point === point);
  if (!found) return null;
  return html`<span class="muted">${ORIGINS[found.origin] ?? found.origin}</span>`;
}
