/** The Options tab: how the change is carried out. */

import { Field } from "../parts/field.js";
import { html, useId, useSignal } from "../vendor/preact.js";

/** Suggested breakpoint points; the user may type any other. */
const POINTS = [
  "pre-create",
  "post-create",
  "pre-update",
  "post-update",
  "pre-replace",
  "post-replace",
  "pre-delete",
  "post-delete",
];

/**
 * @typedef {import("./draft.js").Draft} Draft
 * @param {{draft: Draft, findings: import("./texts.js").Found[], isNew: boolean}} props
 */
export function OptionsForm({ draft, findings, isNew }) {
  const options = draft.options.value;
  return html`<div class="edit-form column">
    <label class="row"><input type="checkbox" checked=${options.rollback}
      onChange=${(/** @type {any} */ event) => draft.choose({ rollback: event.currentTarget.checked })} />
      Roll back on failure</label>
    <${Text} draft=${draft} findings=${findings} name="timeout" place="timeout_mins" label="Timeout in minutes"
      hint="Time spent waiting for approval does not count. Leave empty to keep the current value." numeric=${true} />
    <${Text} draft=${draft} findings=${findings} name="tags" place="tags" label="Tags" hint="Separate tags with commas." />
    <${Breakpoints} draft=${draft} findings=${findings} isNew=${isNew} />
    ${
      !isNew &&
      html`<${Text} draft=${draft} findings=${findings} name="only" place="only" label="Only these resources"
          hint="Names separated by commas; * and ? are wildcards. Other resources do not change." />
        <${Text} draft=${draft} findings=${findings} name="except" place="except" label="Exclude these resources"
          hint="Same format." />`
    }
  </div>`;
}

/** The error at a place. @param {import("./texts.js").Found[]} findings @param {string} place */
function errorAt(findings, place) {
  const match = findings.find(({ finding }) => finding.place.startsWith(place));
  return match ? [match.finding.reason, match.finding.remedy].filter(Boolean).join(". ") : "";
}

/**
 * @param {{draft: Draft, findings: import("./texts.js").Found[], name: "timeout" | "tags" | "only" | "except",
 *   place: string, label: string, hint: string, numeric?: boolean}} props
 */
function Text({ draft, findings, name, place, label, hint, numeric = false }) {
  return html`<${Field} label=${label} hint=${hint} error=${errorAt(findings, place)}>
    ${(/** @type {object} */ needs) => html`<input ...${needs} value=${draft.options.value[name]}
      inputmode=${numeric ? "numeric" : undefined} autocomplete="off" spellcheck=${false}
      onInput=${(/** @type {any} */ event) => draft.choose({ [name]: event.currentTarget.value })} />`}
  <//>`;
}

/** @param {{draft: Draft, findings: import("./texts.js").Found[], isNew: boolean}} props */
function Breakpoints({ draft, findings, isNew }) {
  const { add, clear } = draft.options.value;
  const at = useSignal("");
  const point = useSignal(isNew ? "pre-create" : "pre-update");
  const id = useId();
  const error = errorAt(findings, "hooks.");
  /** @param {Event} event */
  function added(event) {
    event.preventDefault();
    const rule = `${at.value.trim()}:${point.value.trim()}`;
    if (!at.value.trim() || add.includes(rule)) return;
    draft.choose({ add: [...add, rule] });
    at.value = "";
  }
  return html`<fieldset class="column">
    <legend>Breakpoints for this change</legend>
    ${add.map(
      (rule) => html`<p key=${rule} class="row">Stop at <code class="breaks">${rule}</code>
        <button class="plain" aria-label=${`Remove ${rule}`}
          onClick=${() => draft.choose({ add: add.filter((item) => item !== rule) })}>Remove</button></p>`,
    )}
    <form class="row" onSubmit=${added}>
      <label for=${`${id}-at`}>Resource</label>
      <input id=${`${id}-at`} value=${at.value} placeholder="web/db_*" spellcheck=${false} autocomplete="off"
        onInput=${(/** @type {any} */ event) => {
          at.value = event.currentTarget.value;
        }} />
      <label for=${`${id}-point`}>at</label>
      <input id=${`${id}-point`} list=${`${id}-points`} value=${point.value} autocomplete="off"
        onInput=${(/** @type {any} */ event) => {
          point.value = event.currentTarget.value;
        }} />
      <datalist id=${`${id}-points`}>${POINTS.map((point) => html`<option key=${point} value=${point} />`)}</datalist>
      <button>Add</button>
    </form>
    ${error && html`<span class="wrong">${error}</span>`}
    ${clear
      .filter((rule) => rule !== "*")
      .map(
        (rule) => html`<p key=${rule} class="row">Skip <code class="breaks">${rule}</code>
          <button class="plain" aria-label=${`Restore ${rule}`}
            onClick=${() => draft.choose({ clear: clear.filter((item) => item !== rule) })}>Restore</button></p>`,
      )}
    <label class="row"><input type="checkbox" checked=${clear.includes("*")}
      onChange=${(/** @type {any} */ event) => draft.choose({ clear: event.currentTarget.checked ? ["*"] : [] })} />
      Skip all breakpoints except operator rules</label>
  </fieldset>`;
}
