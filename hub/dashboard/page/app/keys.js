/**
 * Keyboard shortcuts and their help dialog. A component registers its shortcuts while it is
 * mounted.
 */

import { Dialog } from "../parts/dialog.js";
import { html, signal, useEffect } from "../vendor/preact.js";

/** @typedef {{key: string, description: string, run?: (event: KeyboardEvent) => void}} Key */

/** @type {Set<Key>} */
const keys = new Set();
const helpOpen = signal(false);

/**
 * Registers keyboard shortcuts while a component is mounted. Without `run`, a shortcut is only
 * listed in the help, because another listener handles it.
 * @param {Key[]} added
 */
export function useKeys(added) {
  useEffect(() => {
    for (const item of added) keys.add(item);
    return () => {
      for (const item of added) keys.delete(item);
    };
  }, []);
}

/** Elements that take text input. Sliders and checkboxes do not. */
const TEXT_INPUTS =
  "textarea, select, input:not([type=range], [type=checkbox], [type=radio], [type=button])";

/** Whether the key press is text input. @param {EventTarget | null} target */
function isTextInput(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches(TEXT_INPUTS));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTextInput(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") {
    helpOpen.value = true;
    return;
  }
  const match = [...keys].find((key) => key.run && key.key === event.key);
  if (!match?.run) return;
  event.preventDefault();
  match.run(event);
});

export function KeyHelp() {
  if (!helpOpen.value) return null;
  const close = () => {
    helpOpen.value = false;
  };
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${close}>
    <table>
      <tbody>
        ${[
          ...keys,
          { key: "?", description: "show keyboard shortcuts" },
          { key: "Esc", description: "close the dialog" },
        ].map(
          (key) => html`<tr key=${key.key}>
            <th scope="row"><kbd>${key.key}</kbd></th>
            <td>${key.description}</td>
          </tr>`,
        )}
      </tbody>
    </table>
    <div class="acts"><button onClick=${close}>Close</button></div>
  <//>`;
}
