import { html } from "../vendor/preact.js";

export function Stacks() {
  return html`<h1>Stacks</h1>`;
}
