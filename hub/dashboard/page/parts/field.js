/** A form control with label, hint and error. */

import { html, useId } from "../vendor/preact.js";

/**
 * children: a function that receives the attributes of the control (id, aria-*).
 * @param {{label: string, hint?: string, error?: string,
 *   children: (needs: Record<string, unknown>) => unknown}} props
 */
export function Field({ label, hint, error, children }) {
  const id = useId();
  const descriptions = [hint && `${id}-hint`, error && `${id}-wrong`].filter(Boolean).join(" ");
  const needs = {
    id,
    "aria-describedby": descriptions || undefined,
    "aria-invalid": error ? "true" : undefined,
  };
  return html`<div class="field">
    <label class="label" for=${id}>${label}</label>
    ${children(needs)} ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}
    ${error && html`<span class="wrong" id=${`${id}-wrong`}>${error}</span>`}
  </div>`;
}
