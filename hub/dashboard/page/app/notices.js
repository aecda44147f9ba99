/** Toast notifications. */

import { Icon } from "../parts/icon.js";
import { html, signal } from "../vendor/preact.js";

/** @typedef {{number: number, kind: "good" | "bad" | "plain", text: string}} Notice */

/** Display time in milliseconds; notices of kind "bad" stay until dismissed. */
const STAYS = 6000;
const AT_MOST = 4;
let counted = 0;

/** @type {import("../vendor/preact.js").Signal<Notice[]>} */
const notices = signal([]);

/** @param {string} text @param {Notice["kind"]} [kind] */
export function notify(text, kind = "plain") {
  counted += 1;
  const number = counted;
  notices.value = [...notices.value, { number, kind, text }].slice(-AT_MOST);
  if (kind !== "bad") setTimeout(() => dismiss(number), STAYS);
}

/** @param {number} number */
function dismiss(number) {
  notices.value = notices.value.filter((one) => one.number !== number);
}

export function Notices() {
  return html`<div class="notices" role="status" aria-live="polite">
    ${notices.value.map(
      (one) => html`<div class="notice" key=${one.number} data-kind=${one.kind}>
        <span class="said">${one.text}</span>
        <button class="plain" aria-label="Dismiss" onClick=${() => dismiss(one.number)}>
          <${Icon} name="close" />
        </button>
      </div>`,
    )}
  </div>`;
}
