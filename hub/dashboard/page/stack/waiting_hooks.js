/** The waiting hooks of a change with what one can do about them. */

import { session } from "../api/session.js";
import { AT_DEADLINE } from "../inbox/hook_text.js";
import { offeredDecisions } from "../inbox/rights.js";
import { Ago } from "../parts/ago.js";
import { Breakable } from "../parts/breakable.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";
import { STEP_COMMANDS } from "./debugging.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./view_state.js").ViewState} ViewState */

/** Maximum number of hooks listed. */
const MAX_HOOKS = 20;

/** @param {{viewState: ViewState, debugging: Debugging}} props */
export function WaitingHooks({ viewState, debugging }) {
  const hooks = viewState.watched.gone.value ? [] : viewState.nodeHooks.value;
  if (hooks.length === 0) return null;
  return html`<section class="column" aria-label="Waiting for approval">
    <h2>Waiting for approval</h2>
    ${hooks.slice(0, MAX_HOOKS).map((hook) => html`<${WaitingHook} key=${hook.id} viewState=${viewState} debugging=${debugging} hook=${hook} />`)}
    ${hooks.length > MAX_HOOKS && html`<p class="muted">And ${hooks.length - MAX_HOOKS} more.</p>`}
  </section>`;
}

/** @param {{viewState: ViewState, debugging: Debugging, hook: Hook}} props */
function WaitingHook({ viewState, debugging, hook }) {
  const offered = offeredDecisions(hook, session.value);
  const command = STEP_COMMANDS.find((item) => item.name === "continue");
  const select = () => viewState.selectHook(hook);
  return html`<div class="stack-gate column">
    <p class="row">
      <span class="badge" data-state="gate"><${Icon} name="gate" label="waiting for approval" /></span>
      <button class="plain stack-place breaks" onClick=${select}>
        <code><${Breakable} text=${hook.path || "the stack"} /></code> at ${hook.point}
      </button>
    </p>
    ${
      offered.length > 0 &&
      html`<div class="row">
        ${
          offered.includes("continue") &&
          command &&
          html`<button class="first" disabled=${debugging.busy.value}
            onClick=${() => debugging.send(command, hook)}>Continue</button>`
        }
        <button onClick=${select}>Answer…</button>
      </div>`
    }
    <p class="muted">
      Opened <${Ago} at=${hook.opened_at} />.
      ${hook.deadline && html`${" "}Deadline <${Ago} at=${hook.deadline} />, then ${AT_DEADLINE[hook.on_timeout]}.`}
    </p>
  </div>`;
}
