/** The Dependencies tab: outputs of other stacks that the stack reads, and stacks that read its outputs. */

import { href } from "../app/route.js";
import { useFetch } from "../parts/fetch.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/**
 * @typedef {{stack_name: string | null, stack_id: string, output: string, secret: boolean,
 *   changed: boolean}} ReadOutput stack_name: null if the stack was deleted
 * @typedef {{stack_name: string, stack_id: string}} DependentStack
 */

/** @param {{watched: WatchedStack}} props */
export function StackDependencies({ watched }) {
  const { data, failure } = useFetch(
    async () =>
      /** @type {{reads: ReadOutput[], read_by: DependentStack[]}} */ (
        await watched.get("/dependencies")
      ),
    [watched.stack.value?.stack_status, watched.stack.value?.updated_time],
  );
  if (!data.value) return html`<${ProblemBox} error=${failure.value} />`;
  const { reads, read_by } = data.value;
  return html`<${ProblemBox} error=${failure.value} />
    <section class="column" aria-label="Outputs of other stacks">
      <h2>Reads outputs of other stacks</h2>
      ${reads.length === 0 ? html`<p class="muted">The stack reads no outputs of other stacks.</p>` : html`<${Reads} project=${watched.project} reads=${reads} />`}
    </section>
    <section class="column" aria-label="Stacks that read this one">
      <h2>Stacks that read outputs of this stack</h2>
      ${
        read_by.length === 0
          ? html`<p class="muted">No stack reads outputs of this stack.</p>`
          : html`<p class="muted">Delete or update these stacks before you delete this one.</p>
            <ul>${read_by.map((one) => html`<li key=${one.stack_id}><${StackLink} project=${watched.project} stack=${one} /></li>`)}</ul>`
      }
    </section>`;
}

/** @param {{project: string, reads: ReadOutput[]}} props */
function Reads({ project, reads }) {
  return html`<div class="scrolls"><table class="stack-table">
    <thead><tr><th scope="col">Output</th><th scope="col">Stack</th><th scope="col">Value</th></tr></thead>
    <tbody>${reads.map(
      (one) => html`<tr key=${`${one.stack_id}/${one.output}`}>
        <th scope="row"><code>${one.output}</code></th>
        <td data-label="Stack"><${StackLink} project=${project} stack=${one} /></td>
        <td data-label="Value">${one.changed ? "has changed since it was read" : "unchanged"}${one.secret && ", secret"}</td>
      </tr>`,
    )}</tbody>
  </table></div>`;
}

/** @param {{project: string, stack: {stack_name: string | null, stack_id: string}}} props */
function StackLink({ project, stack: { stack_name, stack_id } }) {
  if (!stack_name) return html`<code class="breaks">${stack_id}</code>`;
  return html`<a href=${href(project, "stack", stack_name, stack_id)}>${stack_name}</a>`;
}
