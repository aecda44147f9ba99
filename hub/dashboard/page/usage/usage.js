/** The Usage page: quotas, budgets of requests, the user's account, services and tokens. */

import { may, mode, session } from "../api/session.js";
import { Ago } from "../parts/ago.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";
import { Budgets } from "./budgets.js";
import { Quotas } from "./quotas.js";
import { Services } from "./services.js";
import { Tokens } from "./tokens.js";

/** @param {{project: string}} props */
export function Usage({ project }) {
  return html`<h1>Usage</h1>
    <div class="usage">
      <${Quotas} project=${project} />
      <${Budgets} project=${project} />
      <${Account} />
      ${may("operate") && html`<${Services} project=${project} />`}
      ${may("administer") && html`<${Tokens} project=${project} />`}
    </div>`;
}

/** Right and what it permits. @type {readonly [string, string][]} */
const RIGHTS = [
  ["read", "View everything in the project"],
  ["write", "Create, change and delete stacks, breakpoints and subscriptions"],
  ["answer", "Answer hooks whose rules name you as an approver"],
  ["monitor", "Read server metrics, if the role applies to every project"],
  ["operate", "View server-wide information"],
  ["administer", "Create and revoke tokens"],
];

function Account() {
  const user = session.value;
  if (!user) return null;
  return html`<section class="card column" aria-labelledby="myself">
    <h2 id="myself">Your account</h2>
    <p><strong class="breaks">${user.name}</strong> in ${user.project}${user.roles.length > 0 && `, ${user.roles.length === 1 ? "role" : "roles"}: ${user.roles.join(", ")}`}</p>
    ${mode === "none" && html`<p class="muted">This server does not require sign-in, so every user has all rights. It accepts connections from its own machine only.</p>`}
    ${user.expires_at && html`<p class="muted">Session expires <${Ago} at=${user.expires_at} />.</p>`}
    <ul class="usage-rights">
      ${RIGHTS.map(
        ([
          right,
          text,
        ]) => html`<li key=${right} class="badge" data-state=${may(right) ? "done" : "dropped"}>
          <${Icon} name=${may(right) ? "done" : "dropped"} label=${may(right) ? "allowed" : "not allowed"} />${text}
        </li>`,
      )}
    </ul>
  </section>`;
}
