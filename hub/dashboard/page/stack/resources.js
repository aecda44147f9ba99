/** Every resource in a table: what the graph shows, for those who would rather read. */

import { shown } from "../graph/fold/tally.js";
import { sentence } from "../graph/words.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { useRead } from "../parts/read.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/**
 * @typedef {{resource_name: string, resource_type: string, resource_status: string,
 *   resource_status_reason: string, physical_resource_id: string, updated_time: string,
 *   parent_resource?: string, links: {rel: string, href: string}[]}} Resource
 * @typedef {Resource & {path: string, key: string, subject: import("./state.js").Subject}} Row
 */

/** Rows that are shown at first, and again when more are asked for. */
const PAGE = 200;
/** Levels of stacks inside. */
const DEPTH = 10;

/** @param {{looking: Looking, show: (view: string) => void}} props */
export function Resources({ looking, show }) {
  const { watched } = looking;
  const { found, wrong } = useRead(
    async () =>
      /** @type {Resource[]} */ ((await watched.get(`/resources?nested_depth=${DEPTH}`)).resources),
    [watched],
    (again) => watched.events.subscribe(again),
  );
  const asked = useSignal("");
  const many = useSignal(PAGE);
  const rows = (found.value ?? []).map((one) => row(one, looking)).sort(byPath);
  const words = asked.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = rows.filter((one) => {
    const text = `${one.path} ${one.resource_type} ${one.resource_status} ${one.physical_resource_id}`;
    return words.every((word) => text.toLowerCase().includes(word));
  });
  return html`<section class="column" aria-label="Resources">
    <${ProblemBox} error=${wrong.value} />
    <label class="row stack-search"><${Icon} name="search" label="Search" />
      <input type="search" placeholder="name, type or status" value=${asked.value}
        onInput=${(/** @type {Event} */ event) => {
          asked.value = /** @type {HTMLInputElement} */ (event.currentTarget).value;
        }} />
      <span class="muted" role="status">${fitting.length} of ${rows.length}</span>
    </label>
    <div class="scrolls">
      <table class="stack-table">
        <thead><tr><th scope="col">Resource</th><th scope="col">Status</th><th scope="col">In this change</th>
          <th scope="col">Type</th><th scope="col">Physical id</th><th scope="col">Changed</th></tr></thead>
        <tbody>
          ${fitting.slice(0, many.value).map(
            (one) => html`<tr key=${one.key}>
              <th scope="row"><button class="plain stack-place" onClick=${() => open(looking, one, show)}>
                <code>${one.path}</code></button></th>
              <td data-label="Status">${one.resource_status}
                ${one.resource_status.endsWith("FAILED") && html`<br /><span class="muted breaks">${one.resource_status_reason}</span>`}</td>
              <td data-label="In this change"><${InChange} looking=${looking} path=${one.path} /></td>
              <td data-label="Type"><code class="breaks">${one.resource_type}</code></td>
              <td data-label="Physical id"><code class="breaks">${one.physical_resource_id || "none"}</code></td>
              <td data-label="Changed"><${Ago} at=${one.updated_time} /></td>
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
    ${found.value?.length === 0 && html`<p class="muted">The stack has no resources.</p>`}
  </section>`;
}

/** What becomes of a resource in the traversal. @param {{looking: Looking, path: string}} props */
function InChange({ looking, path }) {
  const model = looking.model.value;
  model?.version.value;
  const node = model?.at(path);
  if (!model || !node) return html`<span class="muted">left alone</span>`;
  const progress = model.progress(node.key).value;
  const state = shown(progress);
  return html`<${Badge} state=${state} word=${`${progress.operation}: ${sentence(progress)}`} />`;
}

/** @param {Resource} resource @param {Looking} looking @returns {Row} */
function row(resource, looking) {
  const href = resource.links.find((one) => one.rel === "stack")?.href ?? "";
  const [name = "", id = ""] = href.split("/").slice(-2).map(decodeURIComponent);
  const path = [pathsOf(looking).get(id) ?? resource.parent_resource, resource.resource_name]
    .filter(Boolean)
    .join("/");
  const key = `${id}/${resource.resource_name}`;
  const { resource_name, resource_type } = resource;
  const subject = { key, path, resource: resource_name, type: resource_type, stack: { name, id } };
  return { ...resource, path, key, subject };
}

/** Paths of the stacks, by their ids. @param {Looking} looking @returns {Map<string, string>} */
function pathsOf({ watched }) {
  const walks = watched.model.value?.tree.walks.values() ?? [];
  return new Map([...walks].map((walk) => [walk.stackId ?? watched.id, walk.path]));
}

/** @param {Row} one @param {Row} other */
function byPath(one, other) {
  return one.path.localeCompare(other.path);
}

/** @param {Looking} looking @param {Row} row @param {(view: string) => void} show */
function open(looking, row, show) {
  const node = looking.model.value?.at(row.path);
  show("graph");
  if (node) looking.select(node.key);
  else looking.look(row.subject);
}
