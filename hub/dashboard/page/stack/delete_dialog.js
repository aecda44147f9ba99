/** The dialog that deletes a stack: the user types its name and sees how much is deleted. */

import { call } from "../api/client.js";
import { Dialog, useMounted } from "../parts/dialog.js";
import { useFetch } from "../parts/fetch.js";
import { Field } from "../parts/field.js";
import { ProblemBox } from "../parts/problem.js";
import { linesPath } from "../stacks/query.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./actions.js").Act} Act */

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
  const { data } = useFetch(
    async () => (await call("GET", project, linesPath([stack.id]))).stacks[0]?.resources ?? null,
    [stack.id],
  );
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

/** @param {number | null} resources */
function countText(resources) {
  if (resources === null) return "";
  return `The stack has ${resources === 1 ? "1 resource" : `${resources} resources`}.`;
}
