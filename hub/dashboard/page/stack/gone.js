/** A stack that is there no more, or never was: said plainly, and where to go on. */

import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/** @param {{watched: WatchedStack}} props */
export function GoneBox({ watched }) {
  const gone = watched.gone.value;
  if (!gone) return null;
  const seen = watched.model.value !== null;
  const list = html`<a href=${href(watched.project, "stacks")}>All stacks of ${watched.project}</a>`;
  if (gone.how === "missing") {
    return html`<div class="problem" role="alert">
      <p class="reason">
        ${
          seen
            ? `The server no longer knows the stack ${watched.name}.`
            : `There is no stack ${watched.name} with this id in the project ${watched.project}.`
        }
      </p>
      <p>
        <code class="breaks">${watched.id}</code> may be mistyped, of another project, or of a stack
        that was deleted long ago and purged. ${seen && "What is shown is what was there last."}
      </p>
      <p>${list}</p>
    </div>`;
  }
  const word = gone.how === "deleted" ? "was deleted" : "was abandoned: nothing real was deleted";
  return html`<div class="problem" role="alert">
    <p class="reason">
      The stack ${watched.name} ${word}${gone.by && ` by ${gone.by}`}${gone.at && html`, <${Ago} at=${gone.at} />`}.
    </p>
    <p>What is shown is what was there last. ${list}</p>
  </div>`;
}
