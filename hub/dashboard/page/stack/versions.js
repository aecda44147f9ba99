/** The Versions tab: template versions and traversals. */

import { Ago, formatDuration } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { useFetch } from "../parts/fetch.js";
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
  const { data, failure } = useFetch(
    async () =>
      /** @type {{versions: Version[], traversals: Traversal[]}} */ (
        await watched.get("/versions")
      ),
    [stack?.stack_status, stack?.updated_time],
  );
  return html`<${ProblemBox} error=${failure.value} />
    ${
      data.value &&
      html`<section class="column" aria-label="Traversals">
      <h2>Traversals</h2>
      <div class="scrolls"><table class="stack-table">
        <thead><tr><th scope="col">Number</th><th scope="col">Change</th><th scope="col">State</th>
          <th scope="col">Requested by</th><th scope="col">Started</th><th scope="col">Duration</th><th scope="col">Timeline</th></tr></thead>
        <tbody>${data.value.traversals.map((traversal) => html`<${Row} key=${traversal.number} traversal=${traversal} show=${showTraversal} />`)}</tbody>
      </table></div>
      <h2>Versions</h2>
      <div class="scrolls"><table class="stack-table">
        <thead><tr><th scope="col">Version</th><th scope="col">Description</th><th scope="col">Requested by</th>
          <th scope="col">Created</th><th scope="col">Status</th></tr></thead>
        <tbody>${data.value.versions.map(
          (version) => html`<tr key=${version.version}>
            <th scope="row">${version.version}</th>
            <td data-label="Description" class="breaks">${version.description}</td>
            <td data-label="Requested by" class="breaks">${version.requested_by}</td>
            <td data-label="Created"><${Ago} at=${version.created_at} /></td>
            <td data-label="Status">${[version.current && "current", version.reached && "last reached"].filter(Boolean).join(", ") || "earlier"}</td>
          </tr>`,
        )}</tbody>
      </table></div>
    </section>`
    }`;
}

/** @param {{traversal: Traversal, show: (number: number) => void}} props */
function Row({ traversal, show }) {
  return html`<tr>
    <th scope="row">${traversal.number}</th>
    <td data-label="Change">${traversal.action.toLowerCase()} to version ${traversal.version}</td>
    <td data-label="State"><${Badge} state=${STATES[traversal.state] ?? "waiting"} word=${traversal.state} />
      ${traversal.state === "failed" && html`<br /><span class="muted breaks">${traversal.reason}</span>`}</td>
    <td data-label="Requested by" class="breaks">${traversal.requested_by}</td>
    <td data-label="Started"><${Ago} at=${traversal.started_at} /></td>
    <td data-label="Duration">${traversal.ended_at ? formatDuration((Date.parse(traversal.ended_at) - Date.parse(traversal.started_at)) / 1000) : "in progress"}</td>
    <td data-label="Timeline"><button onClick=${() => show(traversal.number)}>Timeline<span class="only-read"> of ${traversal.number}</span></button></td>
  </tr>`;
}
