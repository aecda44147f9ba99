/** The Versions tab: template versions and traversals. */

import { Ago, span } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { useFetched } from "../parts/fetched.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/** @typedef {import("./types.js").Traversal} Traversal */
/**
 * @typedef {{version: number, description: string, requested_by: string, created_at: string,
 *   current: boolean, reached: boolean}} Version
 */

/** Traversal state to badge state. @type {Record<string, string>} */
const STATES = {
  running: "running",
  ending: "running",
  complete: "done",
  failed: "failed",
  stopped: "stopped",
  superseded: "dropped",
};

/** @param {{watched: WatchedStack, showTraversal: (number: number) => void}} props */
export function Versions({ watched, showTraversal }) {
  const stack = watched.stack.value;
  const { found, wrong } = useFetched(
    async () =>
      /** @type {{versions: Version[], traversals: Traversal[]}} */ (
        await watched.get("/versions")
      ),
    [stack?.stack_status, stack?.updated_time],
  );
  return html`<${ProblemBox} error=${wrong.value} />
    ${
      found.value &&
      html`<section class="column" aria-label="Traversals">
      <h2>Traversals</h2>
      <div class="scrolls"><table class="stack-table">
        <thead><tr><th scope="col">Number</th><th scope="col">Change</th><th scope="col">State</th>
          <th scope="col">Requested by</th><th scope="col">Started</th><th scope="col">Duration</th><th scope="col">Timeline</th></tr></thead>
        <tbody>${found.value.traversals.map((one) => html`<${Row} key=${one.number} one=${one} show=${showTraversal} />`)}</tbody>
      </table></div>
      <h2>Versions</h2>
      <div class="scrolls"><table class="stack-table">
        <thead><tr><th scope="col">Version</th><th scope="col">Description</th><th scope="col">Requested by</th>
          <th scope="col">Created</th><th scope="col">Status</th></tr></thead>
        <tbody>${found.value.versions.map(
          (one) => html`<tr key=${one.version}>
            <th scope="row">${one.version}</th>
            <td data-label="Description" class="breaks">${one.description}</td>
            <td data-label="Requested by" class="breaks">${one.requested_by}</td>
            <td data-label="Created"><${Ago} at=${one.created_at} /></td>
            <td data-label="Status">${[one.current && "current", one.reached && "last reached"].filter(Boolean).join(", ") || "earlier"}</td>
          </tr>`,
        )}</tbody>
      </table></div>
    </section>`
    }`;
}

/** @param {{one: Traversal, show: (number: number) => void}} props */
function Row({ one, show }) {
  return html`<tr>
    <th scope="row">${one.number}</th>
    <td data-label="Change">${one.action.toLowerCase()} to version ${one.version}</td>
    <td data-label="State"><${Badge} state=${STATES[one.state] ?? "waiting"} word=${one.state} />
      ${one.state === "failed" && html`<br /><span class="muted breaks">${one.reason}</span>`}</td>
    <td data-label="Requested by" class="breaks">${one.requested_by}</td>
    <td data-label="Started"><${Ago} at=${one.started_at} /></td>
    <td data-label="Duration">${one.ended_at ? span((Date.parse(one.ended_at) - Date.parse(one.started_at)) / 1000) : "in progress"}</td>
    <td data-label="Timeline"><button onClick=${() => show(one.number)}>Timeline<span class="only-read"> of ${one.number}</span></button></td>
  </tr>`;
}
