/** The outputs of a stack. */

import { html } from "../vendor/preact.js";
import { Value } from "./values.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/** @param {{watched: WatchedStack}} props */
export function Outputs({ watched }) {
  const outputs = watched.stack.value?.outputs;
  if (!outputs) return html`<p class="muted">Outputs are not available yet.</p>`;
  if (outputs.length === 0) return html`<p class="muted">The template has no outputs.</p>`;
  return html`<section aria-label="Outputs" class="scrolls">
    <table class="stack-table">
      <thead><tr><th scope="col">Output</th><th scope="col">Value</th><th scope="col">Description</th></tr></thead>
      <tbody>
        ${outputs.map(
          (one) => html`<tr key=${one.output_key}>
            <th scope="row"><code>${one.output_key}</code></th>
            <td data-label="Value">${one.output_error ? html`<span class="breaks">Error: ${one.output_error}</span>` : html`<${Value} value=${one.output_value} />`}</td>
            <td data-label="Description" class="breaks">${one.description}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </section>`;
}
