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
  const breakpoints = seen?.breakpoints ?? [];
  const open = viewState.past.value === null && watched.gone.value === null && may("write");
  return html`<section class="column">
    <h3>Breakpoints</h3>
    ${open && node && html`<${SideToggles} debugging=${debugging} node=${node} />`}
    ${seen && breakpoints.length === 0 && html`<p class="muted">No breakpoints.</p>`}
    <ul class="stack-list">
      ${breakpoints.map((breakpoint) => html`<${Row} key=${breakpoint.point} debugging=${debugging} breakpoint=${breakpoint} open=${open} />`)}
    </ul>
    ${open && subject.resource && html`<${AddBreakpoint} debugging=${debugging} subject=${subject} />`}
  </section>`;
}

/**
 * Toggles for breakpoints before and after the current operation.
 * @param {{debugging: Debugging, node: GraphNode}} props
 */
function SideToggles({ debugging, node }) {
  const { viewState, busy } = debugging;
  const progress = viewState.model.value?.progress(node.key).value;
  if (!progress) return null;
  /** @type {[Side, string][]} */
  const sides = [
    ["pre", "Before"],
    ["post", "After"],
  ];
  const available = sides.filter(([side]) => canSetBreakpoint(node, progress, side));
  if (available.length === 0) return null;
  return html`<div class="row">
    ${available.map(([side, word]) => {
      const isSet = progress.breakpoints.includes(pointOf(node, side, viewState));
      return html`<button key=${side} aria-pressed=${isSet} disabled=${busy.value}
        onClick=${() => debugging.toggle(node, side, !isSet)}>
        ${word}<span class="only-read"> ${node.name}</span>
      </button>`;
    })}
  </div>`;
}

/** @param {{debugging: Debugging, breakpoint: ResourceBreakpoint, open: boolean}} props */
function Row({ debugging, breakpoint, open }) {
  const live = debugging.watched.breakpoints.value.find((other) => other.id === breakpoint.id);
  const author = breakpoint.created_by ? ` by ${breakpoint.created_by}` : "";
  return html`<li class="row">
    <code>${breakpoint.point}</code>
    <span class="muted">${SOURCES[breakpoint.source] ?? breakpoint.source}${author}</span>
    ${
      open &&
      live &&
      html`<button class="plain" onClick=${() => debugging.remove(live)}>
        Remove<span class="only-read"> ${breakpoint.point}</span></button>`
    }
  </li>`;
}

/**
 * A form for a breakpoint at any point, including points of later changes.
 * @param {{debugging: Debugging, subject: Subject}} props
 */
function AddBreakpoint({ debugging, subject }) {
  const point = useSignal("pre-update");
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    debugging.setBreakpoint(subject, point.value);
  };
  return html`<form class="row" onSubmit=${submit}>
    <label class="row"><span class="only-read">Point of the new breakpoint</span>
      <select value=${point.value} onChange=${(/** @type {Event} */ event) => {
        point.value = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
      }}>
        ${POINTS.map((item) => html`<option key=${item} selected=${item === point.value}>${item}</option>`)}
      </select>
    </label>
    <button disabled=${debugging.busy.value}>Set breakpoint</button>
  </form>`;
}
