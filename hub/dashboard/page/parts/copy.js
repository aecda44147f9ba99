/** Copying text to the clipboard. */

import { notify } from "../app/notices.js";
import { html, useRef } from "../vendor/preact.js";
import { Breakable } from "./breakable.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

/**
 * Copies a text. Browsers may refuse it on pages not served over HTTPS.
 * @param {{text: string, what: string, word?: unknown}} props what: for example "the hash"
 */
export function Copy({ text, what, word = "Copy" }) {
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      notify(`Copied ${what}.`);
    } catch {
      notify(`The browser did not allow copying ${what}. Select it and copy it manually.`, "bad");
    }
  }
  return html`<button type="button" class="plain" onClick=${copy} aria-label=${`Copy ${what}`} title=${`Copy ${what}`}>${word}</button>`;
}

/**
 * An ID with a button that copies it.
 * @param {{id: string, what: string}} props what: for example "the ID of the stack"
 */
export function CopyableId({ id, what }) {
  return html`<span class="copyable"><code class="breaks"><${Breakable} text=${id} /></code><${Copy} text=${id} what=${what}
    word=${html`<${Icon} name="copy" />`} /></span>`;
}

/**
 * A dialog with a secret that is shown only once.
 * @param {{title: string, what: string, text: string, onClose: () => void, children?: any}} props
 */
export function SecretDialog({ title, what, text, onClose, children }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${children} Copy it now: it is not shown again.</p>
    <input class="code" readonly ref=${field} value=${text} aria-label=${what}
      onFocus=${() => field.current?.select()} />
    <div class="acts">
      <${Copy} text=${text} what=${what} />
      <button class="first" onClick=${onClose}>Done</button>
    </div>
  <//>`;
}
