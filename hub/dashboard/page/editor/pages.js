import { html } from "../vendor/preact.js";

export function EditPage() {
  return html`<h1>Edit</h1>`;
}

export function NewPage() {
  return html`<h1>New stack</h1>`;
}
