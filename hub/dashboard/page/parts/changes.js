/** Property changes, old and new values. */

import { html } from "../vendor/preact.js";

/**
 * A value for display: strings as they are; other values and the empty string as JSON.
 * @param {unknown} value
 */
export function displayText(value) {
  if (value === undefined) return "";
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

/** What the server sends in place of a hidden value. */
const MASK = "******";

/** @param {{value: unknown}} props */
function Value({ value }) {
  return value === MASK
    ? html`<span class="muted" title="Hidden value">hidden</span>`
    : displayText(value);
}

/**
 * changes: by property; without `from` the property is new, without `to` its value is not known
 * yet.
 * @param {{changes: Record<string, {from?: unknown, to?: unknown}>}} props
 */
export function Changes({ changes }) {
  const rows = Object.entries(changes);
  if (rows.length === 0) return html`<p class="muted">No property changes.</p>`;
  return html`<dl class="changes">
    ${rows.map(
      ([name, change]) => html`<dt key=${name}>${name}</dt>
        <dd>
          ${"from" in change && html`<del><${Value} value=${change.from} /></del>${" → "}`}
          ${"to" in change ? html`<ins><${Value} value=${change.to} /></ins>` : html`<span class="muted">unknown until created</span>`}
        </dd>`,
    )}
  </dl>`;
}
