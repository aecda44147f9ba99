/** The dialog that deletes a stack: the user types its name and sees how much is deleted. */

import { call, stackPath } from "../api/client.js";
import { Dialog, useMounted } from "../parts/dialog.js";
import { useFetch } from "../parts/fetch.js";
import { Field } from "../parts/field.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { DEPTH } from "./resources.js";

/** @typedef {import("./actions.js").Act} Act */
/** @typedef {{physical_resource_id: string, deletion_policy: string}} Counted */

/**
 * act: an action that cannot be undone. send: performs it; the dialog closes when it succeeds.
 * @param {{project: string, stack: {id: string, name: string}, act: Act, send: () => Promise<void>,
 *   close: () => void}} props
 */
export function DeleteDialog({ project, stack, act, send, close }) {
  const typed = useSignal("");
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const mounted = useMounted();
  const { data } = useFetch(async () => {
    const path = `${stackPath(stack.name, stack.id)}/resources?nested_depth=${DEPTH}`;
    return /** @type {Counted[]} */ ((await call("GET", project, path)).resources);
  }, [stack.id]);
  const right = typed.value.trim() === stack.name;
  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    if (!right) return;
    busy.value = true;
    failure.value = null;
    try {
      await send();
      if (mounted.current) close();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }
  return html`<${Dialog} title=${`${act.label} ${stack.name}?`} onClose=${close}>
    <form class="column" onSubmit=${submit}>
      <p>${act.confirmation} ${countText(data.value)}</p>
      <${Field} label=${`Type ${stack.name} to confirm`}>
        ${(/** @type {object} */ needs) => html`<input autocomplete="off" value=${typed.value}
          onInput=${(/** @type {any} */ event) => {
            typed.value = event.target.value;
          }} ...${needs} />`}
      <//>
      <${ProblemBox} error=${failure.value} />
      <div class="acts">
        <button type="button" onClick=${close}>Cancel</button>
        <button class="danger" disabled=${!right || busy.value}>${act.label} ${stack.name}</button>
      </div>
    </form>
  <//>`;
}

/**
 * How many physical resources are lost, as the command line counts them.
 * @param {Counted[] | null} resources with those of nested stacks; null: not known yet
 */
function countText(resources) {
  if (resources === null) return "";
  const existing = resources.filter((one) => one.physical_resource_id);
  if (existing.length === 0) return "The stack has no physical resources.";
  const count = existing.length === 1 ? "1 resource" : `${existing.length} resources`;
  const retained = existing.filter((one) => one.deletion_policy === "Retain").length;
  const kept = retained > 0 ? ` Because of deletion_policy: Retain, ${retained} of them stay.` : "";
  return `The stack has ${count}.${kept}`;
}
