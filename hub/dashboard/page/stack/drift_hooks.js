/** The hooks about drift of a stack: what differs, and the ways to answer. */

import { href } from "../app/route.js";
import { Breakable } from "../parts/breakable.js";
import { Icon } from "../parts/icon.js";
import { withRelativeTimes } from "../parts/relative_times.js";
import { html } from "../vendor/preact.js";
import { DRIFT_COMMANDS } from "./debugging.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./types.js").HeldDrift} HeldDrift */

/** Maximum number of hooks listed. */
const MAX_HOOKS = 20;

/**
 * held: with the sentences of the server.
 * @param {{viewState: ViewState, debugging: Debugging, held: HeldDrift[]}} props
 */
export function DriftHooks({ viewState, debugging, held }) {
  const { watched } = viewState;
  const sentences = new Map(held.map((one) => [one.hook_id, one.sentence]));
  const hooks = watched.gone.value ? [] : watched.hooks.value.filter((hook) => hook.node === null);
  const stack = hooks[0]?.root_stack_name;
  if (!stack) return null;
  const inbox = `${href(watched.project, "inbox")}?${new URLSearchParams({ stack, point: "drift" })}`;
  return html`<section class="column" aria-label="Drift waiting for an answer">
    <h2>Drift waiting for an answer</h2>
    ${hooks.slice(0, MAX_HOOKS).map(
      (hook) => html`<${DriftHook} key=${hook.id} viewState=${viewState} debugging=${debugging}
        hook=${hook} sentence=${sentences.get(hook.id) ?? ""} />`,
    )}
    ${
      hooks.length > 1 &&
      html`<p>
        ${hooks.length > MAX_HOOKS && html`And ${hooks.length - MAX_HOOKS} more. `}
        <a href=${inbox}>Answer all ${hooks.length} in the inbox</a>
      </p>`
    }
  </section>`;
}

/** @param {{viewState: ViewState, debugging: Debugging, hook: Hook, sentence: string}} props */
function DriftHook({ viewState, debugging, hook, sentence }) {
  const select = () => viewState.selectHook(hook);
  const commands = DRIFT_COMMANDS.filter((one) => debugging.isAvailable(one, hook));
  return html`<div class="stack-gate column">
    <p class="row">
      <span class="badge" data-state="gate"><${Icon} name="gate" label="waiting for an answer" /></span>
      <button class="plain stack-place breaks" onClick=${select}>
        <code><${Breakable} text=${hook.path} /></code> at ${hook.point}
      </button>
    </p>
    <p class="breaks">${withRelativeTimes(sentence)}</p>
    <div class="row">
      ${commands.map(
        (one) => html`<button key=${one.name} class=${one.decision === "repair" ? "first" : ""}
          disabled=${debugging.busy.value} onClick=${() => debugging.send(one, hook)}>${one.word}</button>`,
      )}
      <button onClick=${select}>${commands.length > 0 ? "Answer…" : "Details"}</button>
    </div>
  </div>`;
}
