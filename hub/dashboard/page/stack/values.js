/** Properties, attributes and metadata of a resource. */

import { Changes } from "../parts/changes.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./types.js").ResourceDetails} ResourceDetails */
/** @typedef {import("./types.js").NodeDetails} NodeDetails */

/** @type {ReadonlySet<string>} */
const UNBEGUN = new Set(["waiting", "ready"]);
/** What the server sends in place of a hidden value. */
const MASK = "******";

/** @param {{seen: ResourceDetails, node: NodeDetails | null}} props node: its node in the current traversal */
export function Values({ seen, node }) {
  const changes = node?.changes ?? {};
  const wanted = node?.properties;
  return html`${
    Object.keys(changes).length > 0 &&
    html`<section class="column"><h3>Planned changes</h3><${Changes} changes=${changes} /></section>`
  }
  ${node && UNBEGUN.has(node.state) && !wanted && nothing(seen.properties) && html`<p class="muted">Properties are not known yet: they depend on unfinished resources.</p>`}
  ${wanted && html`<${Named} title="Planned properties" values=${wanted} open=${true} />`}
  <${Named} title="Properties" values=${seen.properties} open=${!wanted} />
  <${Named} title="Attributes" values=${seen.attributes} open=${true} />
  <${Named} title="Metadata" values=${seen.metadata} open=${false} />`;
}

/** @param {Record<string, unknown>} values */
function nothing(values) {
  return Object.keys(values).length === 0;
}

/** @param {{title: string, values: Record<string, unknown> | null, open?: boolean}} props */
function Named({ title, values, open }) {
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
export function Value({ value }) {
  if (value === MASK) return html`<span class="muted" title="Hidden value">hidden</span>`;
  if (value === null || value === undefined) return html`<span class="muted">none</span>`;
  if (value === "") return html`<span class="muted">empty</span>`;
  if (typeof value === "object")
    return html`<pre class="stack-value">${JSON.stringify(value, null, 2)}</pre>`;
  return html`<code class="breaks">${String(value)}</code>`;
}
