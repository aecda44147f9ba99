/** A question before something is done; what goes wrong with it is said where it was asked. */

import { html, useSignal } from "../vendor/preact.js";
import { Dialog } from "./dialog.js";
import { ProblemBox } from "./problem.js";

/**
 * word: what is done, on its button. bad: what it takes away does not come back. send: closes the
 * dialog when it has gone well.
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
      <button onClick=${close}>Leave it as it is</button>
      <button class=${bad ? "danger" : "first"} disabled=${busy.value} onClick=${press}>${word}</button>
    </div>
  <//>`;
}
