/** The user's account and rights. */

import { may, mode, session } from "../api/session.js";
import { Ago } from "../parts/ago.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";

/** Right and what it permits. @type {readonly [string, string][]} */
const RIGHTS = [
  ["read", "View everything in the project"],
  ["write", "Create, change and delete stacks, breakpoints and subscriptions"],
  ["answer", "Answer hooks whose rules name you as an approver"],
  ["monitor", "Read server metrics, if the role applies to every project"],
  ["operate", "View server-wide information"],
  ["administer", "Create and revoke tokens"],
];

export function Account() {
  const who = session.value;
  if (!who) return null;
  return html`<section class="card column" aria-labelledby="myself">
    <h2 id="myself">Your account</h2>
    <p><strong class="breaks">${who.name}</strong> in ${who.project}${who.roles.length > 0 && `, ${who.roles.length === 1 ? "role" : "roles"}: ${who.roles.join(", ")}`}</p>
    ${mode === "none" && html`<p class="muted">This server does not require sign-in, so every user has all rights. It accepts connections from its own machine only.</p>`}
    ${who.expires_at && html`<p class="muted">Session expires <${Ago} at=${who.expires_at} />.</p>`}
    <ul class="usage-rights">
      ${RIGHTS.map(
        ([
          right,
          does,
        ]) => html`<li key=${right} class="badge" data-state=${may(right) ? "done" : "dropped"}>
          <${Icon} name=${may(right) ? "done" : "dropped"} label=${may(right) ? "allowed" : "not allowed"} />${does}
        </li>`,
      )}
    </ul>
  </section>`;
}
