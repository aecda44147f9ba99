/** A form control with label, hint and error. */

import { html, useId } from "../vendor/preact.js";

/**
 * children: a function that receives the attributes of the control (id, aria-*).
 * @param {{label: string, hint?: string, wrong?: string,
 *   children: (needs: Record<string, unknown>) => unknown}} props
 */
export function Field({ label, hint, wrong, children }) {
  const id = useId();
  const descriptions = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  const needs = {
    id,
    "aria-describedby": descriptions || undefined,
    "aria-invalid": wrong ? "true" : undefined,
  };
  return html`<div class="field">
    <label class="label" for=${id}>${label}</label>
    ${children(needs)} ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}
    ${wrong && html`<span class="wrong" id=${`${id}-wrong`}>${wrong}</span>`}
  </div>`;
}
