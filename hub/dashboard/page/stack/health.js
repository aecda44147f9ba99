/** Health and protection of a resource. */

import { call } from "../api/client.js";
import { may } from "../api/session.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./view_state.js").Subject} Subject */
/** @typedef {import("./types.js").ResourceDetails} ResourceDetails */

/** @param {{viewState: ViewState, subject: Subject, seen: ResourceDetails, again: () => void}} props */
export function HealthAndProtection({ viewState, subject, seen, again }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const { watched } = viewState;
  const { status } = seen;
  const unhealthy = status?.action === "CHECK" && status.status === "FAILED";
  const isProtected = status?.protected ?? false;
  /** @param {object} body */
  async function mark(body) {
    failure.value = null;
    try {
      await call("PATCH", watched.project, watched.pathOf(subject), body);
      again();
    } catch (error) {
      failure.value = error;
    }
  }
  // The resource does not exist yet.
  if (!status) return null;
  const open = may("write") && !viewState.past.value && !watched.gone.value;
  if (!open && !isProtected && !unhealthy) return null;
  return html`<section class="column">
    <h3>Health and protection</h3>
    <p>
      ${isProtected ? "Protected: cannot be deleted or replaced." : "Not protected."}
      ${unhealthy && " Marked unhealthy: the next update replaces it."}
    </p>
    ${
      open &&
      html`<div class="row">
        <button onClick=${() => mark({ protect: !isProtected })}>
          ${isProtected ? "Remove protection" : "Protect"}</button>
        <button onClick=${() => mark({ mark_unhealthy: !unhealthy })}>
          ${unhealthy ? "Mark healthy" : "Mark unhealthy"}</button>
      </div>`
    }
    <${ProblemBox} error=${failure.value} />
  </section>`;
}
