/** The header of the stack page: status, current traversal and actions. */

import { call } from "../api/client.js";
import { now } from "../api/clock.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { href } from "../app/route.js";
import { Ago, span } from "../parts/ago.js";
import { StatusBadge } from "../parts/badge.js";
import { Confirm } from "../parts/confirm.js";
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
    ${stack && !watched.gone.value && html`<${Acts} watched=${watched} stack=${stack} />`}
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
    ${traversal && html`<${Walk} traversal=${traversal} />`}
    ${inside && html`<span>Nested stack at <code>${stack.path}</code>.</span>`}
    ${stack.pinned && html`<span>Pinned: ${stack.pinned.reason || `by ${stack.pinned.by}`}.</span>`}
    ${(stack.tags ?? []).map((tag) => html`<span class="stack-tag" key=${tag}>${tag}</span>`)}
    <code class="muted breaks">${watched.id}</code>
  </p>`;
}

/** @param {{traversal: Traversal}} props */
function Walk({ traversal }) {
  const { number, requested_by, started_at, ended_at, worked_seconds, action } = traversal;
  const ran = ((ended_at ? Date.parse(ended_at) : now.value) - Date.parse(started_at)) / 1000;
  return html`<span>
    Traversal ${number}, ${action.toLowerCase()} to version ${traversal.version}${" "}
    requested by <strong>${requested_by || "unknown"}</strong> <${Ago} at=${started_at} />${", "}
    ${ended_at ? `took ${span(ran)}` : `running for ${span(ran)}`}, active for ${span(worked_seconds)}.
  </span>`;
}

/** @param {{watched: WatchedStack, stack: Stack}} props */
function Acts({ watched, stack }) {
  const confirming = useSignal(/** @type {Act | null} */ (null));
  const wrong = useSignal(/** @type {unknown} */ (null));
  if (!may("write")) return null;
  /** @param {Act} act */
  async function send(act) {
    const [method, path, body] = act.sends(watched.path);
    await call(method, watched.project, path, body);
    notify(`${watched.name}: ${act.done}`, "good");
    watched.reread();
  }
  /** @param {Act} act */
  function press(act) {
    wrong.value = null;
    if (act.asks) confirming.value = act;
    else
      send(act).catch((error) => {
        wrong.value = error;
      });
  }
  const close = () => {
    confirming.value = null;
  };
  const acts = actionsFor(stack);
  return html`<div class="acts">
      ${!(stack.root && stack.root !== stack.id) && html`<a class="button" href=${href(watched.project, "edit", watched.name, watched.id)}>Edit</a>`}
      ${acts.map(
        (
          act,
        ) => html`<button key=${act.name} class=${act.bad ? "danger" : act.name === "go-on" ? "first" : ""}
          onClick=${() => press(act)}>${act.word}${act.asks ? "…" : ""}</button>`,
      )}
    </div>
    ${wrong.value && html`<${ProblemBox} error=${wrong.value} />`}
    ${
      confirming.value &&
      html`<${Confirm} title=${`${confirming.value.word} ${watched.name}?`} word=${confirming.value.word}
        bad=${confirming.value.bad} send=${send.bind(null, confirming.value)} close=${close}>${confirming.value.asks}<//>`
    }`;
}
