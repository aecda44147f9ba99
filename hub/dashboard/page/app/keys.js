/**
 * Keyboard shortcuts and their help dialog. A component registers its shortcuts while it is
 * mounted.
 */

import { Dialog } from "../parts/dialog.js";
import { html, signal, useEffect } from "../vendor/preact.js";

/** @typedef {{key: string, does: string, run?: (event: KeyboardEvent) => void}} Key */

/** @type {Set<Key>} */
const keys = new Set();
const helping = signal(false);

/**
 * Registers keyboard shortcuts while a component is mounted. Without `run`, a shortcut is only
 * listed in the help, because another listener handles it.
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

/** Elements that take text input. Sliders and checkboxes do not. */
const WRITTEN_IN =
  "textarea, select, input:not([type=range], [type=checkbox], [type=radio], [type=button])";

/** Whether the key press is text input. @param {EventTarget | null} target */
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
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${close}>
    <table>
      <tbody>
        ${[
          ...keys,
          { key: "?", does: "show keyboard shortcuts" },
          { key: "Esc", does: "close the dialog" },
        ].map(
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
