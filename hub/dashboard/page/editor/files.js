/** The Files tab: nested templates and files read by templates. */

import { html, useId, useSignal } from "../vendor/preact.js";
import { withFile } from "./draft.js";

/**
 * file: name of the shown file.
 * @param {{draft: import("./draft.js").Draft, readonly: boolean,
 *   file: import("../vendor/preact.js").Signal<string>}} props
 */
export function Files({ draft, file, readonly }) {
  const { files } = draft.texts.value;
  const names = Object.keys(files);
  const id = useId();
  return html`<div class="edit-files column">
    ${
      names.length === 0
        ? html`<p class="muted">No files. Add a template that a resource uses as its type, or a file that
            <code> get_file</code> reads.</p>`
        : html`<div class="row">
            <label for=${id}>File</label>
            <select id=${id} value=${file.value} onChange=${(/** @type {any} */ event) => {
              file.value = event.currentTarget.value;
            }}>
              ${names.map((name) => html`<option key=${name} value=${name} selected=${name === file.value}>${name}</option>`)}
            </select>
            ${
              !readonly &&
              html`<button onClick=${() => {
                draft.texts.value = withFile(draft.texts.value, file.value, null);
                file.value = Object.keys(draft.texts.value.files)[0] ?? "";
              }}>Remove</button>`
            }
          </div>`
    }
    ${!readonly && html`<${Add} draft=${draft} file=${file} />`}
  </div>`;
}

/** @param {{draft: import("./draft.js").Draft, file: import("../vendor/preact.js").Signal<string>}} props */
function Add({ draft, file }) {
  const name = useSignal("");
  const id = useId();
  /** @param {Event} event */
  function added(event) {
    event.preventDefault();
    const newName = name.value.trim();
    if (!newName) return;
    if (!(newName in draft.texts.value.files))
      draft.texts.value = withFile(draft.texts.value, newName, initialContent(newName));
    file.value = newName;
    name.value = "";
  }
  return html`<form class="row" onSubmit=${added}>
    <label for=${id}>New file</label>
    <input id=${id} value=${name.value} placeholder="server.yaml" spellcheck=${false} autocomplete="off"
      onInput=${(/** @type {any} */ event) => {
        name.value = event.currentTarget.value;
      }} />
    <button>Add</button>
  </form>`;
}

/** @param {string} name */
function initialContent(name) {
  return /\.(ya?ml|template)$/.test(name)
    ? "heat_template_version: 2021-04-16\n\nresources:\n"
    : "";
}
