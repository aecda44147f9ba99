/** What would change: from, to. */

import { html } from "../vendor/preact.js";

/** A value as it is read: text as it is, others (and the empty text) as JSON. @param {unknown} value */
export function shown(value) {
  if (value === undefined) return "";
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

/** What the server shows in the place of a hidden value. */
const MASK = "******";

/** @param {{value: unknown}} props */
function Value({ value }) {
  return value === MASK
    ? html`<span class="muted" title="its value is not shown">hidden</span>`
    : shown(value);
}

/**
 * changes: by property; without `from` it is new, without `to` it is not known yet.
 * @param {{changes: Record<string, {from?: unknown, to?: unknown}>}} props
 */
export function Changes({ changes }) {
  const rows = Object.entries(changes);
  if (rows.length === 0) return html`<p class="muted">No property changes.</p>`;
  return html`<dl class="changes">
    ${rows.map(
      ([name, one]) => html`<dt key=${name}>${name}</dt>
        <dd>
          ${"from" in one && html`<del><${Value} value=${one.from} /></del>${" → "}`}
          ${"to" in one ? html`<ins><${Value} value=${one.to} /></ins>` : html`<span class="muted">known when it is there</span>`}
        </dd>`,
    )}
  </dl>`;
}
