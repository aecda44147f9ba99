import { html } from "../vendor/preact.js";

export function Subscriptions() {
  return html`<h1>Subscriptions</h1>`;
}
