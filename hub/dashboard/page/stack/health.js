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
  const wrong = useSignal(/** @type {unknown} */ (null));
  const { watched } = viewState;
  const { status } = seen;
  const unwell = status?.action === "CHECK" && status.status === "FAILED";
  const guarded = status?.protected ?? false;
  /** @param {object} body */
  async function mark(body) {
    wrong.value = null;
    try {
      await call("PATCH", watched.project, watched.pathOf(subject), body);
      again();
    } catch (error) {
      wrong.value = error;
    }
  }
  // The resource does not exist yet.
  if (!status) return null;
  const open = may("write") && !viewState.past.value && !watched.gone.value;
  if (!open && !guarded && !unwell) return null;
  return html`<section class="column">
    <h3>Health and protection</h3>
    <p>
      ${guarded ? "Protected: cannot be deleted or replaced." : "Not protected."}
      ${unwell && " Marked unhealthy: the next update replaces it."}
    </p>
    ${
      open &&
      html`<div class="row">
        <button onClick=${() => mark({ protect: !guarded })}>
          ${guarded ? "Remove protection" : "Protect"}</button>
        <button onClick=${() => mark({ mark_unhealthy: !unwell })}>
          ${unwell ? "Mark healthy" : "Mark unhealthy"}</button>
      </div>`
    }
    <${ProblemBox} error=${wrong.value} />
  </section>`;
}
