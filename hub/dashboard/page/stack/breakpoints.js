/** Where a node is held, and by whom; set and cleared. */

import { may } from "../api/session.js";
import { html } from "../vendor/preact.js";
import { pointOf } from "./debugging.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./shapes.js").Inspected} Inspected */
/** @typedef {import("../graph/shapes.js").GraphNode} GraphNode */

/** Who says so. @type {Record<string, string>} */
const SOURCES = {
  operator: "the operator's",
  live: "set on the live stack",
  step: "as it is stepped through",
  request: "asked for with this change",
  written: "of its template or environment",
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
      ${holds.map((point) => html`<li key=${point}><code>${point}</code>${" "}<${Source} seen=${seen} point=${point} /></li>`)}
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
function Source({ seen, point }) {
  const found = seen?.breakpoints.find((one) => one.point === point);
  if (!found) return null;
  const by = found.created_by ? ` by ${found.created_by}` : "";
  return html`<span class="muted">${SOURCES[found.source] ?? found.source}${by}</span>`;
}
