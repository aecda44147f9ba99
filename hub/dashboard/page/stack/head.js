/** The header of the stack page: status, current traversal, actions, and the notice of a deletion. */

import { call } from "../api/client.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { href } from "../app/route.js";
import { Ago, formatDuration } from "../parts/ago.js";
import { StatusBadge } from "../parts/badge.js";
import { Breakable } from "../parts/breakable.js";
import { CopyableId } from "../parts/copy.js";
import { Confirm } from "../parts/dialog.js";
import { Menu } from "../parts/menu.js";
import { narrow } from "../parts/narrow.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { actionsFor } from "./actions.js";
import { DeleteDialog } from "./delete_dialog.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/** @typedef {import("./types.js").Stack} Stack */
/** @typedef {import("./types.js").Traversal} Traversal */
/** @typedef {import("./actions.js").Act} Act */

/**
 * views: where a narrow window has the choice of the view.
 * @param {{watched: WatchedStack, views?: unknown}} props
 */
export function Head({ watched, views }) {
  const stack = watched.stack.value;
  const traversal = watched.traversal.value;
  return html`<div class="page-head">
    <h1 class="breaks"><${Breakable} text=${watched.name} /></h1>
    ${stack && html`<${Status} status=${stack.stack_status} waiting=${watched.hooks.value.length} />`}
    <div class="acts">
      ${views}
      ${stack && !watched.gone.value && html`<${ActionButtons} watched=${watched} stack=${stack} />`}
    </div>
  </div>
  ${stack && html`<${Facts} watched=${watched} stack=${stack} traversal=${traversal} />`}`;
}

/** @param {{status: string, waiting: number}} props */
function Status({ status, waiting }) {
  const at = status.indexOf("_");
  return html`<span role="status" aria-label="Status">
    <${StatusBadge} action=${status.slice(0, at)} status=${status.slice(at + 1)} waiting=${waiting} />
  </span>`;
}

/** @param {{watched: WatchedStack, stack: Stack, traversal: Traversal | null}} props */
function Facts({ watched, stack, traversal }) {
  const { root } = stack;
  const inside = root && root !== stack.id;
  return html`<p class="stack-facts">
    ${traversal && html`<${TraversalFacts} traversal=${traversal} waiting=${watched.hooks.value.length} />`}
    ${explainsStatus(stack) && html`<span class="breaks">${stack.stack_status_reason}.</span>`}
    ${inside && html`<span>Nested stack at <code>${stack.path}</code>.</span>`}
    ${stack.pinned && html`<span>Pinned: ${stack.pinned.reason || `by ${stack.pinned.by}`}.</span>`}
    ${(stack.tags ?? []).map((tag) => html`<span class="stack-tag" key=${tag}>${tag}</span>`)}
    <span class="muted"><${CopyableId} id=${watched.id} what="the ID of the stack" /></span>
  </p>`;
}

/** While a change is in progress, the reason only says that it has started. @param {Stack} stack */
function explainsStatus({ stack_status, stack_status_reason }) {
  return Boolean(stack_status_reason) && !stack_status.endsWith("IN_PROGRESS");
}

/**
 * "Create #1 by ada, 9 min ago, 3 waiting".
 * @param {{traversal: Traversal, waiting: number}} props
 */
function TraversalFacts({ traversal, waiting }) {
  const { number, requested_by, started_at, ended_at, worked_seconds, action } = traversal;
  const took = ended_at ? (Date.parse(ended_at) - Date.parse(started_at)) / 1000 : null;
  const name = action.charAt(0) + action.slice(1).toLowerCase();
  const details = `Traversal ${number}, to version ${traversal.version}; operations took ${formatDuration(worked_seconds)} in total`;
  return html`<span title=${details}>
    ${name} #${number} by <strong>${requested_by || "unknown"}</strong>, <${Ago} at=${started_at} />${
      took !== null ? `, took ${formatDuration(took)}` : ""
    }${waiting > 0 && html`, <strong class="waits unbroken">${waiting} waiting</strong>`}
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
  const buttons = html`${!(stack.root && stack.root !== stack.id) && html`<a class="button" href=${href(watched.project, "edit", watched.name, watched.id)}>Edit</a>`}
    ${actionsFor(stack).map(
      (
        act,
      ) => html`<button key=${act.name} class=${act.bad ? "danger" : act.name === "resume-change" ? "first" : ""}
        onClick=${() => press(act)}>${act.label}${act.confirmation ? "…" : ""}</button>`,
    )}`;
  const confirmed = confirming.value;
  const stackOf = { id: watched.id, name: watched.name };
  return html`${narrow.value ? html`<${Menu} label="Actions">${buttons}<//>` : buttons}
    ${failure.value && html`<${ProblemBox} error=${failure.value} />`}
    ${
      confirmed &&
      !confirmed.bad &&
      html`<${Confirm} title=${`${confirmed.label} ${watched.name}?`} word=${confirmed.label}
        send=${send.bind(null, confirmed)} close=${close}>${confirmed.confirmation}<//>`
    }
    ${
      confirmed?.bad &&
      html`<${DeleteDialog} project=${watched.project} stack=${stackOf} act=${confirmed}
        send=${send.bind(null, confirmed)} close=${close} />`
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
