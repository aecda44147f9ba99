import { html } from "../vendor/preact.js";

export function StackPage() {
  return html`<h1>Stack</h1>`;
}
