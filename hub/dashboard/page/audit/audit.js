import { html } from "../vendor/preact.js";

export function Audit() {
  return html`<h1>Audit</h1>`;
}
