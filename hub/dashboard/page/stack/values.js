/** Properties, attributes and metadata of a resource, and the outputs of a stack. */

import { Changes } from "../parts/changes.js";
import { EmptyState } from "../parts/empty_state.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./types.js").ResourceDetails} ResourceDetails */
/** @typedef {import("./types.js").NodeDetails} NodeDetails */

/** @type {ReadonlySet<string>} */
const NOT_STARTED = new Set(["waiting", "ready"]);
/** What the server sends in place of a hidden value. */
const MASK = "******";

/** @param {{seen: ResourceDetails, node: NodeDetails | null}} props node: its node in the current traversal */
export function Values({ seen, node }) {
  const changes = node?.changes ?? {};
  const planned = node?.properties;
  return html`${
    Object.keys(changes).length > 0 &&
    html`<section class="column"><h3>Planned changes</h3><${Changes} changes=${changes} /></section>`
  }
  ${node && NOT_STARTED.has(node.state) && !planned && isEmpty(seen.properties) && html`<p class="muted">Properties are not known yet: they depend on unfinished resources.</p>`}
  ${planned && html`<${ValueTable} title="Planned properties" values=${planned} open=${true} />`}
  <${ValueTable} title="Properties" values=${seen.properties} open=${!planned} />
  <${ValueTable} title="Attributes" values=${seen.attributes} open=${true} />
  <${ValueTable} title="Metadata" values=${seen.metadata} open=${false} />`;
}

/** @param {Record<string, unknown>} values */
function isEmpty(values) {
  return Object.keys(values).length === 0;
}

/** @param {{title: string, values: Record<string, unknown> | null, open?: boolean}} props */
function ValueTable({ title, values, open }) {
  const rows = Object.entries(values ?? {});
  if (rows.length === 0) return null;
  return html`<details class="stack-values" open=${open}>
    <summary><h3>${title}</h3></summary>
    <dl class="stack-facts-list">
      ${rows.map(
        ([name, value]) =>
          html`<dt key=${name}><code>${name}</code></dt><dd><${Value} value=${value} /></dd>`,
      )}
    </dl>
  </details>`;
}

/** @param {{value: unknown}} props */
function Value({ value }) {
  if (value === MASK) return html`<span class="muted" title="Hidden value">hidden</span>`;
  if (value === null || value === undefined) return html`<span class="muted">none</span>`;
  if (value === "") return html`<span class="muted">empty</span>`;
  if (typeof value === "object")
    return html`<pre class="stack-value" tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;
  return html`<code class="breaks">${String(value)}</code>`;
}

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

const OUTPUTS_EXAMPLE = `outputs:
  address:
    value: {get_attr: [server, first_address]}`;

/** @param {{watched: WatchedStack}} props */
export function Outputs({ watched }) {
  const outputs = watched.stack.value?.outputs;
  if (!outputs) return html`<p class="muted">Outputs are not available yet.</p>`;
  if (outputs.length === 0)
    return html`<${EmptyState} title="The template has no outputs.">
      <p>Outputs show values of resources, for users and for other stacks. Add them to the template:</p>
      <pre class="code">${OUTPUTS_EXAMPLE}</pre>
    <//>`;
  return html`<section aria-label="Outputs" class="scrolls">
    <table class="stack-table">
      <thead><tr><th scope="col">Output</th><th scope="col">Value</th><th scope="col">Description</th></tr></thead>
      <tbody>
        ${outputs.map(
          (output) => html`<tr key=${output.output_key}>
            <th scope="row"><code>${output.output_key}</code></th>
            <td data-label="Value">${output.output_error ? html`<span class="breaks">Error: ${output.output_error}</span>` : html`<${Value} value=${output.output_value} />`}</td>
            <td data-label="Description" class="breaks">${output.description}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </section>`;
}
