/** Toast notifications. */

import { Icon } from "../parts/icon.js";
import { html, signal } from "../vendor/preact.js";

/** @typedef {{number: number, kind: "good" | "bad" | "plain", text: string}} Notice */

/** Display time in milliseconds; notices of kind "bad" stay until dismissed. */
const DISPLAY_TIME = 6000;
const MAX_NOTICES = 4;
let counted = 0;

/** @type {import("../vendor/preact.js").Signal<Notice[]>} */
const notices = signal([]);

/**
 * Display a notice; it replaces an equal one that is still displayed.
 * @param {string} text @param {Notice["kind"]} [kind]
 */
export function notify(text, kind = "plain") {
  counted += 1;
  const number = counted;
  const others = notices.value.filter((notice) => notice.text !== text || notice.kind !== kind);
  notices.value = [...others, { number, kind, text }].slice(-MAX_NOTICES);
  if (kind !== "bad") setTimeout(() => dismiss(number), DISPLAY_TIME);
}

/** @param {number} number */
function dismiss(number) {
  notices.value = notices.value.filter((notice) => notice.number !== number);
}

export function Notices() {
  return html`<div class="notices" role="status" aria-live="polite">
    ${notices.value.map(
      (notice) => html`<div class="notice" key=${notice.number} data-kind=${notice.kind}>
        <span class="text">${notice.text}</span>
        <button class="plain" aria-label="Dismiss" onClick=${() => dismiss(notice.number)}>
          <${Icon} name="close" />
        </button>
      </div>`,
    )}
  </div>`;
}
