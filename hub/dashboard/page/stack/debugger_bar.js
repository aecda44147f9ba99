/** The debugger bar: the waiting hook and the step buttons. */

import { may } from "../api/session.js";
import { useKeys } from "../app/keys.js";
import { Ago } from "../parts/ago.js";
import { Breakable } from "../parts/breakable.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { TimelineButton } from "../timeline/timeline.js";
import { html } from "../vendor/preact.js";
import { STEP_COMMANDS } from "./debugging.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./view_state.js").ViewState} ViewState */

/** Final node states. @type {ReadonlySet<string>} */
const FINAL_STATES = new Set(["done", "failed", "stopped", "dropped"]);

/** @param {{debugging: Debugging}} props */
export function DebuggerBar({ debugging }) {
  const { viewState, watched } = debugging;
  useKeys([
    ...STEP_COMMANDS.map((command) => ({
      key: command.key,
      description: command.description,
      run: () => debugging.send(command),
    })),
    {
      key: "t",
      description: "run to the selected node",
      run: () => {
        if (canRunTo(debugging)) runToHere(debugging);
      },
    },
    { key: "n", description: "next waiting hook", run: () => selectNext(viewState, 1) },
    { key: "p", description: "previous waiting hook", run: () => selectNext(viewState, -1) },
  ]);
  const commands = STEP_COMMANDS.filter((command) => debugging.isAvailable(command));
  return html`<section class="stack-bar" aria-label="Debugger">
    ${!watched.gone.value && html`<${HookPosition} viewState=${viewState} />`}
    <div class="row stack-ways">
      ${commands.map(
        (
          command,
        ) => html`<button key=${command.name} class=${command.name === "step" ? "first" : ""} title=${command.description}
          aria-keyshortcuts=${command.key} disabled=${debugging.busy.value} onClick=${() => debugging.send(command)}>
          ${command.word} <kbd aria-hidden="true">${command.key}</kbd></button>`,
      )}
      ${
        canRunTo(debugging) &&
        html`<button title="run to the selected node and stop before its operation" aria-keyshortcuts="t"
          disabled=${debugging.busy.value} onClick=${() => runToHere(debugging)}>
          Run to ${viewState.node.value?.name} <kbd aria-hidden="true">t</kbd></button>`
      }
      <${TimelineButton} viewState=${viewState} />
    </div>
    <${CommandResult} debugging=${debugging} />
  </section>`;
}

/**
 * The waiting hook, its position and the number of waiting hooks.
 * @param {{viewState: ViewState}} props
 */
function HookPosition({ viewState }) {
  const hooks = viewState.nodeHooks.value;
  const hook = viewState.hook.value;
  if (!hook) {
    const busy = viewState.watched.stack.value?.stack_status.endsWith("IN_PROGRESS");
    return html`<p class="muted">${busy ? "In progress. No hooks are waiting." : "No change in progress."}</p>`;
  }
  const at = hooks.indexOf(hook) + 1;
  return html`<p class="row">
    <span class="badge" data-state="gate"><${Icon} name="gate" label="Waiting for approval" /></span>
    <button class="plain stack-place" onClick=${() => viewState.selectHook(hook)}>
      <code><${Breakable} text=${hook.path || "the stack"} /></code> at ${hook.point}
    </button>
    <span class="muted"><${Ago} at=${hook.opened_at} /></span>
    ${
      hooks.length > 1 &&
      html`<button class="plain" aria-label="Previous waiting hook" onClick=${() => selectNext(viewState, -1)}>◂</button>
        <span>${at} of ${hooks.length}</span>
        <button class="plain" aria-label="Next waiting hook" onClick=${() => selectNext(viewState, 1)}>▸</button>`
    }
  </p>`;
}

/** @param {{debugging: Debugging}} props */
function CommandResult({ debugging }) {
  const missed = debugging.missed.value;
  return html`<${ProblemBox} error=${debugging.failure.value} />
    <p role="status" class="stack-result">
      ${debugging.result.value}
      ${missed.map(
        (item) => html`<span key=${item.path + item.point}>
          Too late to stop ${item.path || "the stack"} at ${item.point}: ${item.reason}.${" "}
        </span>`,
      )}
    </p>`;
}

/** @param {Debugging} debugging */
function canRunTo({ viewState, watched }) {
  const node = viewState.node.value;
  const model = viewState.model.value;
  if (!may("answer") || !node?.name || !model || watched.gone.value) return false;
  if (!watched.stack.value?.stack_status.endsWith("IN_PROGRESS")) return false;
  const { state, hook } = model.progress(node.key).value;
  return !FINAL_STATES.has(state) && state !== "running" && !hook;
}

/** @param {Debugging} debugging */
function runToHere(debugging) {
  const node = debugging.viewState.node.value;
  if (node) debugging.runTo(node);
}

/** @param {ViewState} viewState @param {1 | -1} by */
function selectNext(viewState, by) {
  const hooks = viewState.nodeHooks.value;
  const hook = viewState.hook.value;
  if (!hook) return;
  const at =
    viewState.selected.value === viewState.keyOf(hook)
      ? hooks.indexOf(hook) + by
      : hooks.indexOf(hook);
  const target = hooks[(at + hooks.length) % hooks.length];
  if (target) viewState.selectHook(target);
}
