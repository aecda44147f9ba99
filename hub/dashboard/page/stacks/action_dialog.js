/** The dialog of actions on a stack in the list. */

import { call } from "../api/client.js";
import { stackPath } from "../api/stack.js";
import { notify } from "../app/notices.js";
import { href } from "../app/route.js";
import { StatusBadge } from "../parts/badge.js";
import { Dialog } from "../parts/dialog.js";
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
  const wrong = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const path = stackPath(line.name, line.id);
  /** @param {Act} act */
  async function send(act) {
    const [method, where, body] = act.sends(path);
    busy.value = true;
    wrong.value = null;
    try {
      await call(method, project, where, body);
      notify(`${line.name}: ${act.done}`, "good");
      onClose();
    } catch (error) {
      wrong.value = error;
    } finally {
      busy.value = false;
    }
  }
  const acts = actionsFor(asStack(line));
  return html`<${Dialog} title=${line.name} onClose=${onClose}>
    <p><${StatusBadge} action=${line.action} status=${line.status} /></p>
    <${ProblemBox} error=${wrong.value} />
    <ul class="stacks-acts">
      <li><a class="button" href=${href(project, "edit", line.name, line.id)}>Edit</a>
        <span>Change the template, parameters and breakpoints, with a live plan.</span></li>
      ${acts
        .filter((one) => !one.bad)
        .map(
          (one) => html`<li key=${one.name}>
            <button disabled=${busy.value} onClick=${() => send(one)}>${one.word}</button>
            <span>${one.asks ?? one.done}</span>
          </li>`,
        )}
    </ul>
    ${acts
      .filter((one) => one.bad)
      .map(
        (one) =>
          html`<${Typed} key=${one.name} act=${one} line=${line} busy=${busy.value} send=${send} />`,
      )}
    <div class="acts"><button onClick=${onClose}>Close</button></div>
  <//>`;
}

/**
 * A destructive action: the user must type the stack's name first.
 * @param {{act: Act, line: Line, busy: boolean, send: (act: Act) => Promise<void>}} props
 */
function Typed({ act, line, busy, send }) {
  const typed = useSignal("");
  const right = typed.value.trim() === line.name;
  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    if (right) send(act);
  }
  const many = line.resources === 1 ? "1 resource" : `${line.resources} resources`;
  return html`<form class="stacks-typed column" onSubmit=${submit}>
    <h3>${act.word}</h3>
    <p>${act.asks} The stack has ${many}.</p>
    <${Field} label=${`Type ${line.name} to confirm`}>
      ${(/** @type {object} */ needs) => html`<input autocomplete="off" value=${typed.value}
        onInput=${(/** @type {any} */ event) => {
          typed.value = event.target.value;
        }} ...${needs} />`}
    <//>
    <div><button class="danger" disabled=${!right || busy}>${act.word} ${line.name}</button></div>
  </form>`;
}
