/** Where a resource is held, and by whom; set and taken away. */

import { may } from "../api/session.js";
import { canSet } from "../graph/drawing/sides.js";
import { html, useSignal } from "../vendor/preact.js";
import { pointOf } from "./debugging.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./state.js").Subject} Subject */
/** @typedef {import("./shapes.js").Held} Held */
/** @typedef {import("./shapes.js").Inspected} Inspected */
/** @typedef {import("../graph/shapes.js").GraphNode} GraphNode */
/** @typedef {"pre" | "post"} Side */

/** Who says so. @type {Record<string, string>} */
const SOURCES = {
  operator: "the operator's",
  live: "set on the live stack",
  step: "as it is stepped through",
  request: "asked for with this change",
  written: "of its template or environment",
};
/** What may be done to a resource, now or in a change to come. */
const POINTS = ["create", "update", "replace", "delete", "check", "suspend", "resume"].flatMap(
  (operation) => [`pre-${operation}`, `post-${operation}`],
);

/**
 * @param {{debugging: Debugging, subject: Subject, node: GraphNode | null,
 *   seen: Inspected | null}} props
 */
export function Breakpoints({ debugging, subject, node, seen }) {
  const { looking, watched } = debugging;
  const holds = seen?.breakpoints ?? [];
  const open = looking.past.value === null && watched.gone.value === null && may("write");
  return html`<section class="column">
    <h3>Breakpoints</h3>
    ${open && node && html`<${Sides} debugging=${debugging} node=${node} />`}
    ${seen && holds.length === 0 && html`<p class="muted">Nothing holds it.</p>`}
    <ul class="stack-list">
      ${holds.map((one) => html`<${Row} key=${one.point} debugging=${debugging} one=${one} open=${open} />`)}
    </ul>
    ${open && subject.resource && html`<${Another} debugging=${debugging} subject=${subject} />`}
  </section>`;
}

/** Before and after what is done to it now. @param {{debugging: Debugging, node: GraphNode}} props */
function Sides({ debugging, node }) {
  const { looking, busy } = debugging;
  const progress = looking.model.value?.progress(node.key).value;
  if (!progress) return null;
  /** @type {[Side, string][]} */
  const sides = [
    ["pre", "Before"],
    ["post", "After"],
  ];
  const ahead = sides.filter(([side]) => canSet(node, progress, side));
  if (ahead.length === 0) return null;
  return html`<div class="row">
    ${ahead.map(([side, word]) => {
      const on = progress.breakpoints.includes(pointOf(node, side, looking));
      return html`<button key=${side} aria-pressed=${on} disabled=${busy.value}
        onClick=${() => debugging.mark(node, side, !on)}>
        ${word}<span class="only-read"> ${node.name}</span>
      </button>`;
    })}
  </div>`;
}

/** @param {{debugging: Debugging, one: Held, open: boolean}} props */
function Row({ debugging, one, open }) {
  const live = debugging.watched.breakpoints.value.find((other) => other.id === one.id);
  const by = one.created_by ? ` by ${one.created_by}` : "";
  return html`<li class="row">
    <code>${one.point}</code>
    <span class="muted">${SOURCES[one.source] ?? one.source}${by}</span>
    ${
      open &&
      live &&
      html`<button class="plain" onClick=${() => debugging.remove(live)}>
        Take away<span class="only-read"> ${one.point}</span></button>`
    }
  </li>`;
}

/** At any point, also of changes to come. @param {{debugging: Debugging, subject: Subject}} props */
function Another({ debugging, subject }) {
  const point = useSignal("pre-update");
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    debugging.hold(subject, point.value);
  };
  return html`<form class="row" onSubmit=${submit}>
    <label class="row"><span class="only-read">Another breakpoint</span>
      <select value=${point.value} onChange=${(/** @type {Event} */ event) => {
        point.value = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
      }}>
        ${POINTS.map((one) => html`<option key=${one} selected=${one === point.value}>${one}</option>`)}
      </select>
    </label>
    <button disabled=${debugging.busy.value}>Set</button>
  </form>`;
}
