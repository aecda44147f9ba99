/** Marks on a resource: not well, or not to be taken away. */

import { call } from "../api/client.js";
import { may } from "../api/session.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./state.js").Subject} Subject */
/** @typedef {import("./shapes.js").Inspected} Inspected */

/** @param {{looking: Looking, subject: Subject, seen: Inspected, again: () => void}} props */
export function Marks({ looking, subject, seen, again }) {
  const wrong = useSignal(/** @type {unknown} */ (null));
  const { watched } = looking;
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
  // There is nothing to mark yet.
  if (!status) return null;
  const open = may("write") && !looking.past.value && !watched.gone.value;
  if (!open && !guarded && !unwell) return null;
  return html`<section class="column">
    <h3>Marks</h3>
    <p>
      ${guarded ? "Protected: it may be neither deleted nor replaced." : "Not protected."}
      ${unwell && " Marked unhealthy: the next update replaces it."}
    </p>
    ${
      open &&
      html`<div class="row">
        <button onClick=${() => mark({ protect: !guarded })}>
          ${guarded ? "Protect no longer" : "Protect"}</button>
        <button onClick=${() => mark({ mark_unhealthy: !unwell })}>
          ${unwell ? "Mark healthy" : "Mark unhealthy"}</button>
      </div>`
    }
    <${ProblemBox} error=${wrong.value} />
  </section>`;
}
