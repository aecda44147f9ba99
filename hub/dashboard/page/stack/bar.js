/** The bar of the debugger: where it stands, and the ways to go on. */

import { may } from "../api/session.js";
import { useKeys } from "../app/keys.js";
import { Ago } from "../parts/ago.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { TimelineButton } from "../timeline/timeline.js";
import { html } from "../vendor/preact.js";
import { WAYS } from "./debugging.js";
import { keyOfHook } from "./state.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./state.js").Looking} Looking */

/** Of what is not done any more. @type {ReadonlySet<string>} */
const OVER = new Set(["done", "failed", "stopped", "dropped"]);

/** @param {{debugging: Debugging}} props */
export function Bar({ debugging }) {
  const { looking, watched } = debugging;
  useKeys([
    ...WAYS.map((way) => ({
      key: way.key,
      does: way.does,
      run: () => debugging.go(way),
    })),
    {
      key: "t",
      does: "run to the node that is looked at",
      run: () => {
        if (canRunTo(debugging)) runToHere(debugging);
      },
    },
    { key: "n", does: "look at the next that waits at a gate", run: () => next(looking, 1) },
    { key: "p", does: "look at the one before that waits at a gate", run: () => next(looking, -1) },
  ]);
  const ways = WAYS.filter((way) => debugging.opens(way));
  return html`<section class="stack-bar" aria-label="Debugger">
    ${!watched.gone.value && html`<${Place} looking=${looking} />`}
    <div class="row stack-ways">
      ${ways.map(
        (
          way,
        ) => html`<button key=${way.name} class=${way.name === "step" ? "first" : ""} title=${way.does}
          aria-keyshortcuts=${way.key} disabled=${debugging.busy.value} onClick=${() => debugging.go(way)}>
          ${way.word} <kbd aria-hidden="true">${way.key}</kbd></button>`,
      )}
      ${
        canRunTo(debugging) &&
        html`<button title="go on, and stop before anything is done to it" aria-keyshortcuts="t"
          disabled=${debugging.busy.value} onClick=${() => runToHere(debugging)}>
          Run to ${looking.node.value?.name} <kbd aria-hidden="true">t</kbd></button>`
      }
      <${TimelineButton} looking=${looking} />
    </div>
    <${Outcome} debugging=${debugging} />
  </section>`;
}

/** What waits, and how many. @param {{looking: Looking}} props */
function Place({ looking }) {
  const hooks = looking.watched.hooks.value;
  const hook = looking.hook.value;
  if (!hook) {
    const busy = looking.watched.stack.value?.stack_status.endsWith("IN_PROGRESS");
    return html`<p class="muted">${busy ? "It runs; nothing waits at a gate." : "Nothing is under way."}</p>`;
  }
  const at = hooks.indexOf(hook) + 1;
  return html`<p class="row">
    <span class="badge" data-state="gate"><${Icon} name="gate" />At the gate</span>
    <button class="plain stack-place" onClick=${() => looking.select(keyOfHook(hook))}>
      <code>${hook.path || "the stack"}</code> at ${hook.point}
    </button>
    <span class="muted"><${Ago} at=${hook.opened_at} /></span>
    ${
      hooks.length > 1 &&
      html`<button class="plain" aria-label="The one before" onClick=${() => next(looking, -1)}>◂</button>
        <span>${at} of ${hooks.length}</span>
        <button class="plain" aria-label="The next" onClick=${() => next(looking, 1)}>▸</button>`
    }
  </p>`;
}

/** @param {{debugging: Debugging}} props */
function Outcome({ debugging }) {
  const late = debugging.late.value;
  return html`<${ProblemBox} error=${debugging.wrong.value} />
    <p role="status" class="stack-said">
      ${debugging.said.value}
      ${late.map(
        (one) => html`<span key=${one.path + one.point}>
          Too late for ${one.path || "the stack"} at ${one.point}: ${one.reason}.${" "}
        </span>`,
      )}
    </p>`;
}

/** @param {Debugging} debugging */
function canRunTo({ looking, watched }) {
  const node = looking.node.value;
  const model = looking.model.value;
  if (!may("answer") || !node?.name || !model || watched.gone.value) return false;
  if (!watched.stack.value?.stack_status.endsWith("IN_PROGRESS")) return false;
  const { state, hook } = model.progress(node.key).value;
  return !OVER.has(state) && state !== "running" && !hook;
}

/** @param {Debugging} debugging */
function runToHere(debugging) {
  const node = debugging.looking.node.value;
  if (node) debugging.runTo(node);
}

/** @param {Looking} looking @param {1 | -1} by */
function next(looking, by) {
  const hooks = looking.watched.hooks.value;
  const hook = looking.hook.value;
  if (!hook) return;
  const at =
    looking.selected.value === keyOfHook(hook) ? hooks.indexOf(hook) + by : hooks.indexOf(hook);
  const to = hooks[(at + hooks.length) % hooks.length];
  if (to) looking.select(keyOfHook(to));
}
