import { html } from "../vendor/preact.js";

export function Inbox() {
  return html`<h1>Inbox</h1>`;
}
