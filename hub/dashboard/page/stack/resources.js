/** The Resources tab: the content of the graph as a table. */

import { displayState } from "../graph/fold/tally.js";
import { sentence } from "../graph/labels.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Breakable } from "../parts/breakable.js";
import { CopyableId } from "../parts/copy.js";
import { useFetch } from "../parts/fetch.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { DriftBadge } from "./drift.js";

/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/**
 * @typedef {{headgate_resource_name: string, resource_type: string, resource_status: string,
 *   resource_status_reason: string, physical_resource_id: string, updated_time: string,
 *   headgate_parent_resource?: string, links: {rel: string, href: string}[]}} Resource
 * @typedef {Resource & {path: string, key: string, subject: import("./view_state.js").Subject}} Row
 */

/** Rows shown initially and added by "Show more". */
const PAGE = 200;
/** Levels of nested stacks. */
export const DEPTH = 10;

/** @param {{viewState: ViewState, show: (view: string) => void}} props */
export function Resources({ viewState, show }) {
  const { watched } = viewState;
  const { data, failure } = useFetch(
    async () =>
      /** @type {Resource[]} */ ((await watched.get(`/resources?nested_depth=${DEPTH}`)).resources),
    [watched],
    (again) => watched.events.subscribe(again),
  );
  const search = useSignal("");
  const many = useSignal(PAGE);
  const rows = (data.value ?? []).map((item) => row(item, viewState)).sort(byPath);
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = rows.filter((row) => {
    const text = `${row.path} ${row.resource_type} ${row.resource_status} ${row.physical_resource_id}`;
    return words.every((word) => text.toLowerCase().includes(word));
  });
  return html`<section class="column" aria-label="Resources">
    <${ProblemBox} error=${failure.value} />
    <label class="row stack-search"><${Icon} name="search" label="Search" />
      <input type="search" placeholder="Name, type or status" value=${search.value}
        onInput=${(/** @type {Event} */ event) => {
          search.value = /** @type {HTMLInputElement} */ (event.currentTarget).value;
        }} />
      <span class="muted" role="status">${fitting.length} of ${rows.length}</span>
    </label>
    <div class="scrolls">
      <table class="stack-table">
        <thead><tr><th scope="col">Resource</th><th scope="col">Status</th><th scope="col">In this change</th>
          <th scope="col">Type</th><th scope="col">Physical ID</th><th scope="col">Updated</th></tr></thead>
        <tbody>
          ${fitting.slice(0, many.value).map(
            (item) => html`<tr key=${item.key}>
              <th scope="row"><button class="plain stack-place" onClick=${() => open(viewState, item, show)}>
                <code><${Breakable} text=${item.path} /></code></button></th>
              <td data-label="Status">${item.resource_status} <${DriftBadge} viewState=${viewState} path=${item.path} />
                ${item.resource_status.endsWith("FAILED") && html`<br /><span class="muted breaks">${item.resource_status_reason}</span>`}</td>
              <td data-label="In this change"><${InChange} viewState=${viewState} path=${item.path} /></td>
              <td data-label="Type"><code class="breaks"><${Breakable} text=${item.resource_type} /></code></td>
              <td data-label="Physical ID">${item.physical_resource_id ? html`<${CopyableId} id=${item.physical_resource_id} what=${`the physical ID of ${item.path}`} />` : "none"}</td>
              <td data-label="Updated"><${Ago} at=${item.updated_time} /></td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${
      fitting.length > many.value &&
      html`<button onClick=${() => {
        many.value += PAGE;
      }}>Show ${Math.min(PAGE, fitting.length - many.value)} more</button>`
    }
    ${data.value?.length === 0 && html`<p class="muted">The stack has no resources.</p>`}
  </section>`;
}

/**
 * The state of a resource in the current traversal.
 * @param {{viewState: ViewState, path: string}} props
 */
function InChange({ viewState, path }) {
  const model = viewState.model.value;
  model?.version.value;
  const node = model?.at(path);
  if (!model || !node) return html`<span class="muted">not affected</span>`;
  const progress = model.progress(node.key).value;
  const state = displayState(progress);
  return html`<${Badge} state=${state} word=${`${progress.operation}: ${sentence(node, progress)}`} />`;
}

/** @param {Resource} resource @param {ViewState} viewState @returns {Row} */
function row(resource, viewState) {
  const href = resource.links.find((link) => link.rel === "stack")?.href ?? "";
  const [name = "", id = ""] = href.split("/").slice(-2).map(decodeURIComponent);
  const resourceName = resource.headgate_resource_name;
  const path = [pathsOf(viewState).get(id) ?? resource.headgate_parent_resource, resourceName]
    .filter(Boolean)
    .join("/");
  const key = `${id}/${resourceName}`;
  const { resource_type } = resource;
  const subject = { key, path, resource: resourceName, type: resource_type, stack: { name, id } };
  return { ...resource, path, key, subject };
}

/** Stack paths by stack ID. @param {ViewState} viewState @returns {Map<string, string>} */
function pathsOf({ watched }) {
  const stackGraphs = watched.model.value?.tree.stackGraphs.values() ?? [];
  return new Map(
    [...stackGraphs].map((stackGraph) => [stackGraph.stackId ?? watched.id, stackGraph.path]),
  );
}

/** @param {Row} a @param {Row} b */
function byPath(a, b) {
  return a.path.localeCompare(b.path);
}

/** @param {ViewState} viewState @param {Row} row @param {(view: string) => void} show */
function open(viewState, row, show) {
  const node = viewState.model.value?.at(row.path);
  show("graph");
  if (node) viewState.select(node.key);
  else viewState.selectResource(row.subject);
}
