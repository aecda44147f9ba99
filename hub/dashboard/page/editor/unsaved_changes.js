/** Asks before leaving the page with unsaved changes. */

import { guard } from "../app/route.js";
import { Dialog } from "../parts/dialog.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";

/** when: whether there are unsaved changes. @param {{when: () => boolean}} props */
export function UnsavedChanges({ when }) {
  const wanted = useSignal(/** @type {(() => void) | null} */ (null));
  const lost = useRef(when);
  lost.current = when;
  useEffect(() => {
    const end = guard((then) => {
      if (!lost.current()) return true;
      wanted.value = then;
      return false;
    });
    /** @param {BeforeUnloadEvent} event */
    const closing = (event) => {
      if (lost.current()) event.preventDefault();
    };
    addEventListener("beforeunload", closing);
    return () => {
      end();
      removeEventListener("beforeunload", closing);
    };
  }, []);
  const then = wanted.value;
  if (!then) return null;
  const stay = () => {
    wanted.value = null;
  };
  const leave = () => {
    stay();
    then();
  };
  return html`<${Dialog} title="Leave without saving?" onClose=${stay}>
    <p>Your changes have not been applied. If you leave, they are lost.</p>
    <div class="acts">
      <button onClick=${stay}>Stay</button>
      <button class="danger" onClick=${leave}>Leave</button>
    </div>
  <//>`;
}
