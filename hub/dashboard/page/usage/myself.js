/** Who one is here, and what one may. */

import { may, mode, session } from "../api/session.js";
import { Ago } from "../parts/ago.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";

/** Right -> what it lets one do. @type {readonly [string, string][]} */
const RIGHTS = [
  ["read", "look at everything of the project"],
  ["write", "make, change and delete stacks, breakpoints and subscriptions"],
  ["answer", "answer hooks, where their rules let one"],
  ["operate", "see what belongs to the server as a whole"],
  ["administer", "give out and revoke tokens"],
];

export function Myself() {
  const who = session.value;
  if (!who) return null;
  return html`<section class="card column" aria-labelledby="myself">
    <h2 id="myself">Who you are</h2>
    <p><strong class="breaks">${who.name}</strong> in ${who.project}${who.roles.length > 0 && `, as ${who.roles.join(", ")}`}</p>
    ${mode === "none" && html`<p class="muted">This server asks nobody to sign in, so everybody may do everything. It listens to its own machine alone.</p>`}
    ${who.expires_at && html`<p class="muted">Signed in until <${Ago} at=${who.expires_at} />.</p>`}
    <ul class="usage-rights">
      ${RIGHTS.map(
        ([
          right,
          does,
        ]) => html`<li key=${right} class="badge" data-state=${may(right) ? "done" : "dropped"}>
          <${Icon} name=${may(right) ? "done" : "dropped"} label=${may(right) ? "may" : "may not"} />${does}
        </li>`,
      )}
    </ul>
  </section>`;
}
