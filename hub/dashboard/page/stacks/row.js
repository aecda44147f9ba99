/** One stack in the list. */

import { may } from "../api/session.js";
import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Badge, StatusBadge } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";
import { narrow } from "./filters.js";
import { Progress } from "./progress.js";
import { matches, toggled } from "./query.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./query.js").StackQuery} StackQuery */

/**
 * gone: the stack was deleted. Roles are explicit because narrow windows display the table as
 * cards.
 * @param {{project: string, line: Line, gone: boolean, query: StackQuery, act: (line: Line) => void}} props
 */
export function Row({ project, line, gone, query, act }) {
  const other = !gone && !matches(line, query);
  return html`<tr role="row" data-gone=${gone ? "" : undefined} data-other=${other ? "" : undefined}>
    <th role="rowheader" scope="row">
      <a class="stacks-name" href=${href(project, "stack", line.name, line.id)}>${line.name}</a>
      ${line.tags.map(
        (tag) => html`<button key=${tag} class="tag" aria-label=${`Filter by tag ${tag}`}
          onClick=${() => narrow({ tags: toggled(query.tags, tag).join(",") })}>${tag}</button>`,
      )}
      ${gone && html`<div class="stacks-note">This stack was deleted.</div>`}
      ${other && html`<div class="stacks-note">No longer matches the filters.</div>`}
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
      <span class="breaks">${line.traversal.requested_by || "unknown"}</span>${" "}
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

/** Whether to show the status reason. @param {Line} line */
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
      <${Icon} name="gate" />${many} ${many === 1 ? "hook waiting" : "hooks waiting"}</a>`
  }
  ${dry > 0 && html`<span class="muted unbroken">${dry} dry-run</span>`}`;
}
