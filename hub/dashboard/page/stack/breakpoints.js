/** The breakpoints of a resource, with controls to set and remove them. */

import { may } from "../api/session.js";
import { canSetBreakpoint } from "../graph/drawing/sides.js";
import { html, useSignal } from "../vendor/preact.js";
import { pointOf } from "./debugging.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./view_state.js").Subject} Subject */
/** @typedef {import("./types.js").ResourceBreakpoint} ResourceBreakpoint */
/** @typedef {import("./types.js").ResourceDetails} ResourceDetails */
/** @typedef {import("../graph/types.js").GraphNode} GraphNode */
/** @typedef {"pre" | "post"} Side */

/** Source of a breakpoint and its label. @type {Record<string, string>} */
const SOURCES = {
  operator: "operator rule",
  live: "set on the live stack",
  step: "from stepping",
  request: "set for this change",
  written: "template or environment",
};
/** Points that a breakpoint can have. */
const POINTS = ["create", "update", "replace", "delete", "check", "suspend", "resume"].flatMap(
  (operation) => [`pre-${operation}`, `post-${operation}`],
);

/**
 * @param {{debugging: Debugging, subject: Subject, node: GraphNode | null,
 *   seen: ResourceDetails | null}} props
 */
export function Breakpoints({ debugging, subject, node, seen }) {
  const { viewState, watched } = debugging;
  const holds = seen?.breakpoints ?? [];
  const open = viewState.past.value === null && watched.gone.value === null && may("write");
  return html`<section class="column">
    <h3>Breakpoints</h3>
    ${open && node && html`<${Sides} debugging=${debugging} node=${node} />`}
    ${seen && holds.length === 0 && html`<p class="muted">No breakpoints.</p>`}
    <ul class="stack-list">
      ${holds.map((one) => html`<${Row} key=${one.point} debugging=${debugging} one=${one} open=${open} />`)}
    </ul>
    ${open && subject.resource && html`<${Another} debugging=${debugging} subject=${subject} />`}
  </section>`;
}

/**
 * Toggles for breakpoints before and after the current operation.
 * @param {{debugging: Debugging, node: GraphNode}} props
 */
function Sides({ debugging, node }) {
  const { viewState, busy } = debugging;
  const progress = viewState.model.value?.progress(node.key).value;
  if (!progress) return null;
  /** @type {[Side, string][]} */
  const sides = [
    ["pre", "Before"],
    ["post", "After"],
  ];
  const ahead = sides.filter(([side]) => canSetBreakpoint(node, progress, side));
  if (ahead.length === 0) return null;
  return html`<div class="row">
    ${ahead.map(([side, word]) => {
      const on = progress.breakpoints.includes(pointOf(node, side, viewState));
      return html`<button key=${side} aria-pressed=${on} disabled=${busy.value}
        onClick=${() => debugging.mark(node, side, !on)}>
        ${word}<span class="only-read"> ${node.name}</span>
      </button>`;
    })}
  </div>`;
}

/** @param {{debugging: Debugging, one: ResourceBreakpoint, open: boolean}} props */
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
        Remove<span class="only-read"> ${one.point}</span></button>`
    }
  </li>`;
}

/**
 * A form for a breakpoint at any point, including points of later changes.
 * @param {{debugging: Debugging, subject: Subject}} props
 */
function Another({ debugging, subject }) {
  const point = useSignal("pre-update");
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    debugging.hold(subject, point.value);
  };
  return html`<form class="row" onSubmit=${submit}>
    <label class="row"><span class="only-read">Point of the new breakpoint</span>
      <select value=${point.value} onChange=${(/** @type {Event} */ event) => {
        point.value = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
      }}>
        ${POINTS.map((one) => html`<option key=${one} selected=${one === point.value}>${one}</option>`)}
      </select>
    </label>
    <button disabled=${debugging.busy.value}>Set breakpoint</button>
  </form>`;
}
