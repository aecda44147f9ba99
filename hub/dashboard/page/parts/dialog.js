/** A native modal dialog: it traps the focus, and Esc closes it. */

import { html, useEffect, useRef } from "../vendor/preact.js";

/**
 * onClose: also called for Esc.
 * @param {{title: string, onClose: () => void, children?: any}} props
 */
export function Dialog({ title, onClose, children }) {
  const shown = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = shown.current;
    const before = document.activeElement;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      // A removed dialog does not restore the focus by itself.
      const lost = document.activeElement === document.body;
      if (lost && before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return html`<dialog ref=${shown} aria-label=${title} onClose=${onClose}>
    <div class="column">
      <h2>${title}</h2>
      ${children}
    </div>
  </dialog>`;
}
