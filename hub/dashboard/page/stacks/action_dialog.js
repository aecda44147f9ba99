/** The dialog of actions on a stack in the list. */

import { call, stackPath } from "../api/client.js";
import { notify } from "../app/notices.js";
import { href } from "../app/route.js";
import { StatusBadge } from "../parts/badge.js";
import { Dialog, useMounted } from "../parts/dialog.js";
import { Field } from "../parts/field.js";
import { ProblemBox } from "../parts/problem.js";
import { actionsFor } from "../stack/actions.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("../stack/actions.js").Act} Act */

/** A list entry in the form that the actions expect. @param {Line} line @returns {any} */
function asStack(line) {
  return { stack_status: `${line.action}_${line.status}`, root: null, id: line.id };
}

/** @param {{project: string, line: Line, onClose: () => void}} props */
export function ActionDialog({ project, line, onClose }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const mounted = useMounted();
  const path = stackPath(line.name, line.id);
  /** @param {Act} act */
  async function send(act) {
    const [method, where, body] = act.request(path);
    busy.value = true;
    failure.value = null;
    try {
      await call(method, project, where, body);
      notify(`${line.name}: ${act.done}`, "good");
      if (mounted.current) onClose();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }
  const actions = actionsFor(asStack(line));
  return html`<${Dialog} title=${line.name} onClose=${onClose}>
    <p><${StatusBadge} action=${line.action} status=${line.status} /></p>
    <${ProblemBox} error=${failure.value} />
    <ul class="stacks-acts">
      <li><a class="button" href=${href(project, "edit", line.name, line.id)}>Edit</a>
        <span>Change the template, parameters and breakpoints, with a live plan.</span></li>
      ${actions
        .filter((act) => !act.bad)
        .map(
          (act) => html`<li key=${act.name}>
            <button disabled=${busy.value} onClick=${() => send(act)}>${act.label}</button>
            <span>${act.confirmation ?? act.done}</span>
          </li>`,
        )}
    </ul>
    ${actions
      .filter((act) => act.bad)
      .map(
        (act) =>
          html`<${ConfirmByName} key=${act.name} act=${act} line=${line} busy=${busy.value} send=${send} />`,
      )}
    <div class="acts"><button onClick=${onClose}>Close</button></div>
  <//>`;
}

/**
 * A destructive action: the user must type the stack's name first.
 * @param {{act: Act, line: Line, busy: boolean, send: (act: Act) => Promise<void>}} props
 */
function ConfirmByName({ act, line, busy, send }) {
  const typed = useSignal("");
  const right = typed.value.trim() === line.name;
  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    if (right) send(act);
  }
  const resourceCount = line.resources === 1 ? "1 resource" : `${line.resources} resources`;
  return html`<form class="stacks-typed column" onSubmit=${submit}>
    <h3>${act.label}</h3>
    <p>${act.confirmation} The stack has ${resourceCount}.</p>
    <${Field} label=${`Type ${line.name} to confirm`}>
      ${(/** @type {object} */ needs) => html`<input autocomplete="off" value=${typed.value}
        onInput=${(/** @type {any} */ event) => {
          typed.value = event.target.value;
        }} ...${needs} />`}
    <//>
    <div><button class="danger" disabled=${!right || busy}>${act.label} ${line.name}</button></div>
  </form>`;
}
