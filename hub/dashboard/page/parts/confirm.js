/** A confirmation dialog that also shows the error of the action. */

import { html, useSignal } from "../vendor/preact.js";
import { Dialog } from "./dialog.js";
import { ProblemBox } from "./problem.js";

/**
 * word: label of the confirm button. bad: the action cannot be undone. send: performs the action;
 * the dialog closes when it succeeds.
 * @param {{title: string, word: string, bad?: boolean, send: () => Promise<void>,
 *   close: () => void, children?: any}} props
 */
export function Confirm({ title, word, bad, send, close, children }) {
  const wrong = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  async function press() {
    busy.value = true;
    try {
      await send();
      close();
    } catch (error) {
      wrong.value = error;
    } finally {
      busy.value = false;
    }
  }
  return html`<${Dialog} title=${title} onClose=${close}>
    <p>${children}</p>
    <${ProblemBox} error=${wrong.value} />
    <div class="acts">
      <button onClick=${close}>Cancel</button>
      <button class=${bad ? "danger" : "first"} disabled=${busy.value} onClick=${press}>${word}</button>
    </div>
  <//>`;
}
