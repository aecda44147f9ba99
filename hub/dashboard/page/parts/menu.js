/** A button that shows further buttons and links below it. */

import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";

/** @param {{label: string, children?: any}} props */
export function Menu({ label, children }) {
  const open = useSignal(false);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!open.value) return;
    const ended = new AbortController();
    const { signal } = ended;
    const outside = (/** @type {Event} */ event) => {
      if (!place.current?.contains(/** @type {Node} */ (event.target))) open.value = false;
    };
    addEventListener("pointerdown", outside, { signal });
    addEventListener("focusin", outside, { signal });
    return () => ended.abort();
  }, [open.value]);
  /** @param {KeyboardEvent} event */
  const closeByKey = (event) => {
    if (event.key !== "Escape" || !open.value) return;
    event.stopPropagation();
    open.value = false;
    button.current?.focus();
  };
  return html`<div class="menu" ref=${place} onKeyDown=${closeByKey}>
    <button type="button" ref=${button} aria-expanded=${open.value} onClick=${() => {
      open.value = !open.value;
    }}>${label} <span aria-hidden="true">▾</span></button>
    ${
      open.value &&
      html`<div class="menu-items" onClick=${() => {
        open.value = false;
      }}>${children}</div>`
    }
  </div>`;
}
