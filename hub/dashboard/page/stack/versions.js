/** Versions of the template, and the traversals toward them. */

import { Ago, span } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { ProblemBox } from "../parts/problem.js";
import { useRead } from "../parts/read.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/** @typedef {import("./shapes.js").Traversal} Traversal */
/**
 * @typedef {{version: number, description: string, requested_by: string, created_at: string,
 *   current: boolean, reached: boolean}} Version
 */

/** Of a traversal, as a badge. @type {Record<string, string>} */
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
  const { found, wrong } = useRead(
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
        <thead><tr><th scope="col">Number</th><th scope="col">What</th><th scope="col">State</th>
          <th scope="col">By</th><th scope="col">Began</th><th scope="col">Took</th><th scope="col">Look</th></tr></thead>
        <tbody>${found.value.traversals.map((one) => html`<${Row} key=${one.number} one=${one} show=${showTraversal} />`)}</tbody>
      </table></div>
      <h2>Versions</h2>
      <div class="scrolls"><table class="stack-table">
        <thead><tr><th scope="col">Version</th><th scope="col">Description</th><th scope="col">By</th>
          <th scope="col">Made</th><th scope="col">Which</th></tr></thead>
        <tbody>${found.value.versions.map(
          (one) => html`<tr key=${one.version}>
            <th scope="row">${one.version}</th>
            <td data-label="Description" class="breaks">${one.description}</td>
            <td data-label="By" class="breaks">${one.requested_by}</td>
            <td data-label="Made"><${Ago} at=${one.created_at} /></td>
            <td data-label="Which">${[one.current && "wanted now", one.reached && "reached last"].filter(Boolean).join(", ") || "earlier"}</td>
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
    <td data-label="What">${one.action.toLowerCase()} to version ${one.version}</td>
    <td data-label="State"><${Badge} state=${STATES[one.state] ?? "waiting"} word=${one.state} />
      ${one.state === "failed" && html`<br /><span class="muted breaks">${one.reason}</span>`}</td>
    <td data-label="By" class="breaks">${one.requested_by}</td>
    <td data-label="Began"><${Ago} at=${one.started_at} /></td>
    <td data-label="Took">${one.ended_at ? span((Date.parse(one.ended_at) - Date.parse(one.started_at)) / 1000) : "not ended"}</td>
    <td data-label="Look"><button onClick=${() => show(one.number)}>Timeline<span class="only-read"> of ${one.number}</span></button></td>
  </tr>`;
}
