/** One stack in the list, with the progress of its change. */

import { may } from "../api/session.js";
import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Badge, StatusBadge } from "../parts/badge.js";
import { Breakable } from "../parts/breakable.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";
import { setFilters } from "./filters.js";
import { matches, toggleWord } from "./query.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./query.js").StackQuery} StackQuery */

/**
 * deleted: the stack was deleted. Roles are explicit because narrow windows display the table as
 * cards.
 * @param {{project: string, line: Line, deleted: boolean, query: StackQuery, act: (line: Line) => void}} props
 */
export function Row({ project, line, deleted, query, act }) {
  const other = !deleted && !matches(line, query);
  return html`<tr role="row" data-gone=${deleted ? "" : undefined} data-other=${other ? "" : undefined}>
    <th role="rowheader" scope="row">
      <a class="stacks-name" href=${href(project, "stack", line.name, line.id)}><${Breakable} text=${line.name} /></a>
      ${line.tags.map(
        (tag) => html`<button key=${tag} class="tag" aria-label=${`Filter by tag ${tag}`}
          onClick=${() => setFilters({ tags: toggleWord(query.tags, tag).join(",") })}>${tag}</button>`,
      )}
      ${deleted && html`<div class="stacks-note">This stack was deleted.</div>`}
      ${other && html`<div class="stacks-note">No longer matches the filters.</div>`}
    </th>
    <td role="cell">
      ${
        deleted
          ? html`<${Badge} state="dropped" word="DELETED" />`
          : html`<${StatusBadge} action=${line.action} status=${line.status} waiting=${line.hooks_waiting} />
              ${showsReason(line) && html`<div class="stacks-reason muted" title=${line.reason}>${line.reason}</div>`}`
      }
    </td>
    <td role="cell">${!deleted && html`<${Progress} nodes=${line.nodes} />`}</td>
    <td role="cell">${!deleted && html`<${WaitingHooks} project=${project} line=${line} />`}</td>
    <td role="cell">
      <span class="breaks">${line.traversal.requested_by || "unknown"}</span>${" "}
      <span class="muted"><${Ago} at=${line.traversal.started_at} /></span>
    </td>
    <td role="cell" class="stacks-act">
      ${
        !deleted &&
        may("write") &&
        html`<button onClick=${() => act(line)} aria-label=${`Actions on ${line.name}`}>Actions…</button>`
      }
    </td>
  </tr>`;
}

/** Whether to show the status reason. @param {Line} line */
function showsReason({ status, reason }) {
  return reason !== "" && (status === "FAILED" || status === "STOPPED");
}

/** @param {{project: string, line: Line}} props */
function WaitingHooks({ project, line }) {
  const { hooks_waiting: many, hooks_dry: dry } = line;
  const target = `${href(project, "inbox")}?${new URLSearchParams({ stack: line.name })}`;
  return html`${
    many > 0 &&
    html`<a class="badge stacks-waits" data-state="gate" href=${target}>
      <${Icon} name="gate" />${many} ${many === 1 ? "hook waiting" : "hooks waiting"}</a>`
  }
  ${dry > 0 && html`<span class="muted unbroken">${dry} dry-run</span>`}`;
}

/** States in display order with their labels. @type {readonly [string, string][]} */
const ORDER = [
  ["done", "done"],
  ["failed", "failed"],
  ["stopped", "stopped"],
  ["dropped", "dropped"],
  ["running", "running"],
  ["parked", "waiting"],
  ["ready", "ready"],
  ["waiting", "waiting for dependencies"],
];

/**
 * The segments of the bar in order, and their text.
 * @param {Record<string, number>} nodes state -> how many
 */
export function progress(nodes) {
  const parts = ORDER.map(([state, word]) => ({ state, word, many: nodes[state] ?? 0 })).filter(
    (item) => item.many > 0,
  );
  const all = parts.reduce((sum, part) => sum + part.many, 0);
  const text = parts.map((part) => `${part.many} ${part.word}`).join(", ");
  return {
    parts,
    all,
    done: nodes.done ?? 0,
    words: all ? `${text}, of ${all} nodes` : "no changes",
  };
}

/** @param {{nodes: Record<string, number>}} props */
export function Progress({ nodes }) {
  const { parts, all, done, words } = progress(nodes);
  if (all === 0) return html`<span class="muted">no changes</span>`;
  const bad = parts.filter((part) => ["failed", "stopped", "dropped"].includes(part.state));
  return html`<div class="stacks-progress" title=${words}>
    <div class="stacks-bar" role="img" aria-label=${words}>
      ${parts.map(
        (part) =>
          html`<span key=${part.state} data-state=${part.state} style=${{ flexGrow: part.many }}></span>`,
      )}
    </div>
    <span class="stacks-counts" aria-hidden="true">
      ${done} of ${all}${bad.map((item) => html`<span key=${item.state} data-state=${item.state}>${item.many} ${item.word}</span>`)}
    </span>
  </div>`;
}
