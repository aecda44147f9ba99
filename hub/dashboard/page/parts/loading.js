/** What a page shows until its data has arrived. */

import { html } from "../vendor/preact.js";

/** @param {{what: string}} props for example "the graph" */
export function Loading({ what }) {
  return html`<p class="loading muted" role="status"><span class="spinner" aria-hidden="true"></span>Loading ${what}…</p>`;
}
