/** The notice for a stack that was deleted, abandoned or does not exist. */

import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/** @param {{watched: WatchedStack}} props */
export function DeletedNotice({ watched }) {
  const gone = watched.gone.value;
  if (!gone) return null;
  const seen = watched.model.value !== null;
  const list = html`<a href=${href(watched.project, "stacks")}>All stacks in ${watched.project}</a>`;
  if (gone.how === "missing") {
    return html`<div class="problem" role="alert">
      <p class="reason">
        ${
          seen
            ? `The stack ${watched.name} no longer exists.`
            : `The project ${watched.project} has no stack ${watched.name} with this ID.`
        }
      </p>
      <p>
        The ID <code class="breaks">${watched.id}</code> may be mistyped, or belong to another project or to a stack
        that was deleted and purged. ${seen && "This page shows its last known state."}
      </p>
      <p>${list}</p>
    </div>`;
  }
  const word =
    gone.how === "deleted"
      ? "was deleted"
      : "was abandoned without deleting its physical resources";
  return html`<div class="problem" role="alert">
    <p class="reason">
      The stack ${watched.name} ${word}${gone.by && ` by ${gone.by}`}${gone.at && html`, <${Ago} at=${gone.at} />`}.
    </p>
    <p>This page shows its last known state. ${list}</p>
  </div>`;
}
