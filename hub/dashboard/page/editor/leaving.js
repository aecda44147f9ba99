/** Going elsewhere with something unsaved: asked first. */

import { guard } from "../app/route.js";
import { Dialog } from "../parts/dialog.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";

/** when: whether something would be lost. @param {{when: () => boolean}} props */
export function Leaving({ when }) {
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
    <p>What you changed here is not sent yet. It is lost when you leave.</p>
    <div class="acts">
      <button onClick=${stay}>Stay</button>
      <button class="danger" onClick=${leave}>Leave</button>
    </div>
  <//>`;
}
