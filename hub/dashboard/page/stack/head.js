/** The header of the stack page: status, current traversal, actions, and the notice of a deletion. */

import { call } from "../api/client.js";
import { now } from "../api/clock.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { href } from "../app/route.js";
import { Ago, formatDuration } from "../parts/ago.js";
import { StatusBadge } from "../parts/badge.js";
import { Confirm } from "../parts/dialog.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { actionsFor } from "./actions.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/** @typedef {import("./types.js").Stack} Stack */
/** @typedef {import("./types.js").Traversal} Traversal */
/** @typedef {import("./actions.js").Act} Act */

/** @param {{watched: WatchedStack}} props */
export function Head({ watched }) {
  const stack = watched.stack.value;
  const traversal = watched.traversal.value;
  return html`<div class="page-head">
    <h1 class="breaks">${watched.name}</h1>
    ${stack && html`<${Status} status=${stack.stack_status} />`}
    ${stack && !watched.gone.value && html`<${ActionButtons} watched=${watched} stack=${stack} />`}
  </div>
  ${stack && html`<${Facts} watched=${watched} stack=${stack} traversal=${traversal} />`}`;
}

/** @param {{status: string}} props */
function Status({ status }) {
  const at = status.indexOf("_");
  return html`<span role="status" aria-label="Status">
    <${StatusBadge} action=${status.slice(0, at)} status=${status.slice(at + 1)} />
  </span>`;
}

/** @param {{watched: WatchedStack, stack: Stack, traversal: Traversal | null}} props */
function Facts({ watched, stack, traversal }) {
  const { root } = stack;
  const inside = root && root !== stack.id;
  return html`<p class="stack-facts">
    ${stack.stack_status_reason && html`<span class="breaks">${stack.stack_status_reason}.</span>`}
    ${traversal && html`<${TraversalFacts} traversal=${traversal} />`}
    ${inside && html`<span>Nested stack at <code>${stack.path}</code>.</span>`}
    ${stack.pinned && html`<span>Pinned: ${stack.pinned.reason || `by ${stack.pinned.by}`}.</span>`}
    ${(stack.tags ?? []).map((tag) => html`<span class="stack-tag" key=${tag}>${tag}</span>`)}
    <code class="muted breaks">${watched.id}</code>
  </p>`;
}

/** @param {{traversal: Traversal}} props */
function TraversalFacts({ traversal }) {
  const { number, requested_by, started_at, ended_at, worked_seconds, action } = traversal;
  const ran = ((ended_at ? Date.parse(ended_at) : now.value) - Date.parse(started_at)) / 1000;
  return html`<span>
    Traversal ${number}, ${action.toLowerCase()} to version ${traversal.version}${" "}
    requested by <strong>${requested_by || "unknown"}</strong> <${Ago} at=${started_at} />${", "}
    ${ended_at ? `took ${formatDuration(ran)}` : `running for ${formatDuration(ran)}`}, working time ${formatDuration(worked_seconds)}.
  </span>`;
}

/** @param {{watched: WatchedStack, stack: Stack}} props */
function ActionButtons({ watched, stack }) {
  const confirming = useSignal(/** @type {Act | null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  if (!may("write")) return null;
  /** @param {Act} act */
  async function send(act) {
    const [method, path, body] = act.request(watched.path);
    await call(method, watched.project, path, body);
    notify(`${watched.name}: ${act.done}`, "good");
    watched.reread();
  }
  /** @param {Act} act */
  function press(act) {
    failure.value = null;
    if (act.confirmation) confirming.value = act;
    else
      send(act).catch((error) => {
        failure.value = error;
      });
  }
  const close = () => {
    confirming.value = null;
  };
  const actions = actionsFor(stack);
  return html`<div class="acts">
      ${!(stack.root && stack.root !== stack.id) && html`<a class="button" href=${href(watched.project, "edit", watched.name, watched.id)}>Edit</a>`}
      ${actions.map(
        (
          act,
        ) => html`<button key=${act.name} class=${act.bad ? "danger" : act.name === "resume-change" ? "first" : ""}
          onClick=${() => press(act)}>${act.label}${act.confirmation ? "…" : ""}</button>`,
      )}
    </div>
    ${failure.value && html`<${ProblemBox} error=${failure.value} />`}
    ${
      confirming.value &&
      html`<${Confirm} title=${`${confirming.value.label} ${watched.name}?`} word=${confirming.value.label}
        bad=${confirming.value.bad} send=${send.bind(null, confirming.value)} close=${close}>${confirming.value.confirmation}<//>`
    }`;
}

/** @param {{watched: WatchedStack}} props */
export function DeletedNotice({ watched }) {
  const deletion = watched.gone.value;
  if (!deletion) return null;
  const seen = watched.model.value !== null;
  const list = html`<a href=${href(watched.project, "stacks")}>All stacks in ${watched.project}</a>`;
  if (deletion.how === "missing") {
    return html`<div class="problem" role="alert">
      <p class="reason">
        ${
          seen
            ? `The stack ${watched.name} no longer exists.`
            : `The project ${watched.project} has no stack ${watched.name} with this ID.`
        }
      </p>
      <p>
        The ID <code class="breaks">${watched.id}</code> may be mistyped, or belong to another project or to a stack
        that was deleted and purged. ${seen && "This page shows its last known state."}
      </p>
      <p>${list}</p>
    </div>`;
  }
  const word =
    deletion.how === "deleted"
      ? "was deleted"
      : "was abandoned without deleting its physical resources";
  return html`<div class="problem" role="alert">
    <p class="reason">
      The stack ${watched.name} ${word}${deletion.by && ` by ${deletion.by}`}${deletion.at && html`, <${Ago} at=${deletion.at} />`}.
    </p>
    <p>This page shows its last known state. ${list}</p>
  </div>`;
}
