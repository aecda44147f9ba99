/** What a page without content says: what will be here, and how it gets here. */

import { html } from "../vendor/preact.js";

/** children: what the content is for, and the next step. @param {{title: string, children?: any}} props */
export function EmptyState({ title, children }) {
  return html`<div class="empty card column">
    <p class="empty-title">${title}</p>
    ${children}
  </div>`;
}
