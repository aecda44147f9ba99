/** What the project uses, who one is, what runs, and who is let in. */

import { may } from "../api/session.js";
import { html } from "../vendor/preact.js";
import { Myself } from "./myself.js";
import { Quotas } from "./quotas.js";
import { Services } from "./services.js";
import { Tokens } from "./tokens.js";

/** @param {{project: string}} props */
export function Usage({ project }) {
  return html`<h1>Usage</h1>
    <div class="usage">
      <${Quotas} project=${project} />
      <${Myself} />
      ${may("operate") && html`<${Services} project=${project} />`}
      ${may("administer") && html`<${Tokens} project=${project} />`}
    </div>`;
}
