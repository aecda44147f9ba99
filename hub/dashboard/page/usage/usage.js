/** The Usage page: quotas, account, services and tokens. */

import { may } from "../api/session.js";
import { html } from "../vendor/preact.js";
import { Account } from "./account.js";
import { Quotas } from "./quotas.js";
import { Services } from "./services.js";
import { Tokens } from "./tokens.js";

/** @param {{project: string}} props */
export function Usage({ project }) {
  return html`<h1>Usage</h1>
    <div class="usage">
      <${Quotas} project=${project} />
      <${Account} />
      ${may("operate") && html`<${Services} project=${project} />`}
      ${may("administer") && html`<${Tokens} project=${project} />`}
    </div>`;
}
