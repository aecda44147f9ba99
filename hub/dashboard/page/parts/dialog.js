/** A native modal dialog, which traps the focus and closes with Esc, and a confirmation. */

import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { ProblemBox } from "./problem.js";

/**
 * onClose: also called for Esc.
 * @param {{title: string, onClose: () => void, children?: any}} props
 */
export function Dialog({ title, onClose, children }) {
  const shown = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const closed = useRef(onClose);
  closed.current = onClose;
  useEffect(() => {
    const dialog = shown.current;
    const before = document.activeElement;
    const close = () => closed.current();
    if (dialog && !dialog.open) {
      dialog.addEventListener("close", close);
      dialog.showModal();
      // The focused button may be at the end of a long dialog.
      dialog.scrollTop = 0;
    }
    return () => {
      // Browsers fire "close" in the next frame, when the page may already show another dialog.
      dialog?.removeEventListener("close", close);
      dialog?.close();
      // A removed dialog does not restore the focus by itself.
      const lost = document.activeElement === document.body;
      if (lost && before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return html`<dialog ref=${shown} aria-label=${title}>
    <div class="column">
      <h2>${title}</h2>
      ${children}
    </div>
  </dialog>`;
}

/** Whether the component is still shown, for what follows a request. */
export function useMounted() {
  const mounted = useRef(true);
  useEffect(
    () => () => {
      mounted.current = false;
    },
    [],
  );
  return mounted;
}

/**
 * word: label of the confirm button. bad: the action cannot be undone. send: performs the action;
 * the dialog closes when it succeeds.
 * @param {{title: string, word: string, bad?: boolean, send: () => Promise<void>,
 *   close: () => void, children?: any}} props
 */
export function Confirm({ title, word, bad, send, close, children }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const mounted = useMounted();
  async function press() {
    busy.value = true;
    try {
      await send();
      if (mounted.current) close();
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }
  return html`<${Dialog} title=${title} onClose=${close}>
    <p>${children}</p>
    <${ProblemBox} error=${failure.value} />
    <div class="acts">
      <button onClick=${close}>Cancel</button>
      <button class=${bad ? "danger" : "first"} disabled=${busy.value} onClick=${press}>${word}</button>
    </div>
  <//>`;
}
