import { html } from "../vendor/preact.js";

export function Usage() {
  return html`<h1>Usage</h1>`;
}
