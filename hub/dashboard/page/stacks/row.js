/** One stack in the list. */

import { may } from "../api/session.js";
import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Badge, StatusBadge } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";
import { matches, toggled } from "./asked.js";
import { narrow } from "./filters.js";
import { Progress } from "./progress.js";

/** @typedef {import("./shapes.js").Line} Line */
/** @typedef {import("./asked.js").Asked} Asked */

/**
 * gone: the stack is there no more. Roles are said, as a narrow window shows tables as cards.
 * @param {{project: string, line: Line, gone: boolean, asked: Asked, act: (line: Line) => void}} props
 */
export function Row({ project, line, gone, asked, act }) {
  const other = !gone && !matches(line, asked);
  return html`<tr role="row" data-gone=${gone ? "" : undefined} data-other=${other ? "" : undefined}>
    <th role="rowheader" scope="row">
      <a class="stacks-name" href=${href(project, "stack", line.name, line.id)}>${line.name}</a>
      ${line.tags.map(
        (tag) => html`<button key=${tag} class="tag" aria-label=${`Only with the tag ${tag}`}
          onClick=${() => narrow({ tags: toggled(asked.tags, tag).join(",") })}>${tag}</button>`,
      )}
      ${gone && html`<div class="stacks-note">Deleted: it is there no more.</div>`}
      ${other && html`<div class="stacks-note">No longer what the list is asked for.</div>`}
    </th>
    <td role="cell">
      ${
        gone
          ? html`<${Badge} state="dropped" word="DELETED" />`
          : html`<${StatusBadge} action=${line.action} status=${line.status} />
              ${tells(line) && html`<div class="stacks-reason muted" title=${line.reason}>${line.reason}</div>`}`
      }
    </td>
    <td role="cell">${!gone && html`<${Progress} nodes=${line.nodes} />`}</td>
    <td role="cell">${!gone && html`<${Waits} project=${project} line=${line} />`}</td>
    <td role="cell">
      <span class="breaks">${line.traversal.requested_by || "nobody known"}</span>${" "}
      <span class="muted"><${Ago} at=${line.traversal.started_at} /></span>
    </td>
    <td role="cell" class="stacks-act">
      ${
        !gone &&
        may("write") &&
        html`<button onClick=${() => act(line)} aria-label=${`Actions on ${line.name}`}>Actions…</button>`
      }
    </td>
  </tr>`;
}

/** Whether the reason says more than the status does. @param {Line} line */
function tells({ status, reason }) {
  return reason !== "" && (status === "FAILED" || status === "STOPPED");
}

/** @param {{project: string, line: Line}} props */
function Waits({ project, line }) {
  const { hooks_waiting: many, hooks_dry: dry } = line;
  const to = `${href(project, "inbox")}?${new URLSearchParams({ stack: line.name })}`;
  return html`${
    many > 0 &&
    html`<a class="badge stacks-waits" data-state="gate" href=${to}>
      <${Icon} name="gate" />${many} ${many === 1 ? "hook waits" : "hooks wait"}</a>`
  }
  ${dry > 0 && html`<span class="muted unbroken">${dry} dry</span>`}`;
}
