/** The dialog of actions on a stack in the list. */

import { call, stackPath } from "../api/client.js";
import { notify } from "../app/notices.js";
import { href } from "../app/route.js";
import { StatusBadge } from "../parts/badge.js";
import { Dialog, useMounted } from "../parts/dialog.js";
import { ProblemBox } from "../parts/problem.js";
import { actionsFor } from "../stack/actions.js";
import { DeleteDialog } from "../stack/delete_dialog.js";
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
  const destroying = useSignal(/** @type {Act | null} */ (null));
  const mounted = useMounted();
  /** @param {Act} act */
  const ask = (act) => {
    destroying.value = act;
  };
  const path = stackPath(line.name, line.id);
  /** @param {Act} act */
  async function perform(act) {
    const [method, where, body] = act.request(path);
    await call(method, project, where, body);
    notify(`${line.name}: ${act.done}`, "good");
  }
  /** @param {Act} act */
  async function send(act) {
    busy.value = true;
    failure.value = null;
    try {
      await perform(act);
      if (mounted.current) onClose();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }
  const actions = actionsFor(asStack(line));
  if (destroying.value) {
    const act = destroying.value;
    return html`<${DeleteDialog} project=${project} stack=${line} act=${act} close=${onClose}
      send=${() => perform(act)} />`;
  }
  return html`<${Dialog} title=${line.name} onClose=${onClose}>
    <p><${StatusBadge} action=${line.action} status=${line.status} /></p>
    <${ProblemBox} error=${failure.value} />
    <ul class="stacks-acts">
      <li><a class="button" href=${href(project, "edit", line.name, line.id)}>Edit</a>
        <span>Change the template, parameters and breakpoints, with a live plan.</span></li>
      ${actions.map(
        (act) => html`<li key=${act.name}>
          <button class=${act.bad ? "danger" : ""} disabled=${busy.value}
            onClick=${() => (act.bad ? ask(act) : send(act))}>${act.label}${act.bad ? "…" : ""}</button>
          <span>${act.confirmation ?? act.done}</span>
        </li>`,
      )}
    </ul>
    <div class="acts"><button onClick=${onClose}>Close</button></div>
  <//>`;
}
