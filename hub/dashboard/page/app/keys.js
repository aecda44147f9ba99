/** Keys that work everywhere, and the list of all. Pages add theirs while they are shown. */

import { Dialog } from "../parts/dialog.js";
import { html, signal, useEffect } from "../vendor/preact.js";

/** @typedef {{key: string, does: string, run?: (event: KeyboardEvent) => void}} Key */

/** @type {Set<Key>} */
const keys = new Set();
const helping = signal(false);

/**
 * Have keys work while a component is shown. run: left out where something else listens, and the
 * key is to be in the list only.
 * @param {Key[]} added
 */
export function useKeys(added) {
  useEffect(() => {
    for (const one of added) keys.add(one);
    return () => {
      for (const one of added) keys.delete(one);
    };
  }, []);
}

/** A slider, a box and the like have no letters of their own. */
const WRITTEN_IN =
  "textarea, select, input:not([type=range], [type=checkbox], [type=radio], [type=button])";

/** Whether somebody writes, so that letters are letters. @param {EventTarget | null} target */
function writes(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches(WRITTEN_IN));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (writes(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") {
    helping.value = true;
    return;
  }
  const found = [...keys].find((one) => one.run && one.key === event.key);
  if (!found?.run) return;
  event.preventDefault();
  found.run(event);
});

export function KeyHelp() {
  if (!helping.value) return null;
  const close = () => {
    helping.value = false;
  };
  return html`<${Dialog} title="Keys" onClose=${close}>
    <table>
      <tbody>
        ${[...keys, { key: "?", does: "show this" }, { key: "Esc", does: "close" }].map(
          (one) => html`<tr key=${one.key}>
            <th scope="row"><kbd>${one.key}</kbd></th>
            <td>${one.does}</td>
          </tr>`,
        )}
      </tbody>
    </table>
    <div class="acts"><button onClick=${close}>Close</button></div>
  <//>`;
}
