/** Text that is wanted somewhere else. */

import { notify } from "../app/notices.js";
import { html, useRef } from "../vendor/preact.js";
import { Dialog } from "./dialog.js";

/**
 * Copies a text. A page that did not come over HTTPS may be refused that, and says so.
 * @param {{text: string, what: string, word?: string}} props what: such as "the hash"
 */
export function Copy({ text, what, word = "Copy" }) {
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      notify(`Copied ${what}.`);
    } catch {
      notify(`The browser does not let this page copy ${what}: select it, and copy it.`, "bad");
    }
  }
  return html`<button type="button" class="plain" onClick=${copy} aria-label=${`Copy ${what}`}>${word}</button>`;
}

/**
 * A secret that is shown this once.
 * @param {{title: string, what: string, text: string, onClose: () => void, children?: any}} props
 */
export function Once({ title, what, text, onClose, children }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${children} It is shown this once: copy it now.</p>
    <input class="code" readonly ref=${field} value=${text} aria-label=${what}
      onFocus=${() => field.current?.select()} />
    <div class="acts">
      <${Copy} text=${text} what=${what} />
      <button class="first" onClick=${onClose}>I have it</button>
    </div>
  <//>`;
}
