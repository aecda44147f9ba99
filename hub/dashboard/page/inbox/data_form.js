/** The form fields for the data that a rule requests. */

import { Field } from "../parts/field.js";
import { html } from "../vendor/preact.js";
import { formOf } from "./form.js";
import { serverPlace } from "./submit.js";

/** @typedef {import("./form.js").Control} Control */
/** @typedef {import("./form.js").Raw} Raw */
/**
 * set: changes a value. readonly: the fields cannot be edited.
 * @typedef {{raws: import("./form.js").Raws, errors: Record<string, string>, readonly: boolean,
 *   set: (path: string, raw: Raw) => void}} FormState
 */

/**
 * Points at which the answer may choose members, and the key of that choice.
 * @type {Record<string, string>}
 */
const CHOICES = { "pre-batch": "members", "pre-scale-in": "victims" };

/**
 * The form for the data that a hook requests; null if it requests none.
 * @param {import("../api/documents.js").Hook} hook
 */
export function dataFormFor(hook) {
  const chosen = memberChoice(hook);
  if (!chosen) return hook.ask ? formOf(hook.ask) : null;
  const schema = hook.ask ?? { type: "object", properties: {} };
  return formOf({ ...schema, properties: { ...schema.properties, ...chosen } });
}

/** @param {import("../api/documents.js").Hook} hook */
function memberChoice(hook) {
  const key = CHOICES[hook.point];
  const seen = hook.resource?.seen ?? {};
  if (!key || !Array.isArray(seen.may_choose) || !Array.isArray(seen[key])) return null;
  const many = seen[key].length;
  const least = key === "members" ? Math.min(1, many) : many;
  return {
    [key]: {
      type: "array",
      items: { enum: seen.may_choose },
      default: seen[key],
      minItems: least,
      maxItems: many,
      title: key === "members" ? "Members of this batch" : "Members to remove",
    },
  };
}

/** @param {{form: Control, formState: FormState}} props */
export function DataForm({ form, formState }) {
  const { title, description } = form.schema;
  const top = formState.errors.data;
  if (form.kind !== "group")
    return html`<${ControlField} control=${form} formState=${formState} />`;
  return html`<fieldset class="ask">
    <legend>${title ?? "Requested data"}</legend>
    ${description && html`<p class="hint">${description}</p>`}
    ${top && html`<p class="wrong">${top}</p>`}
    ${form.children.map((child) => html`<${ControlField} key=${child.path} control=${child} formState=${formState} />`)}
  </fieldset>`;
}

/** @param {{control: Control, formState: FormState}} props */
function ControlField({ control, formState }) {
  const error = formState.errors[serverPlace(control.path)];
  if (control.kind === "group") {
    return html`<fieldset class="ask">
      <legend>${control.label}${!control.required && html` <span class="hint">(optional)</span>`}</legend>
      ${control.hint && html`<p class="hint">${control.hint}</p>`}
      ${control.children.map((child) => html`<${ControlField} key=${child.path} control=${child} formState=${formState} />`)}
    </fieldset>`;
  }
  if (control.kind === "flag")
    return html`<${Checkbox} control=${control} formState=${formState} error=${error} />`;
  if (control.kind === "choices")
    return html`<${CheckboxGroup} control=${control} formState=${formState} error=${error} />`;
  return html`<${Field} label=${labelOf(control)} hint=${hintOf(control)} error=${error}>
    ${(/** @type {Record<string, unknown>} */ needs) => controlOf(control, formState, needs)}
  <//>`;
}

/** @param {Control} control */
function labelOf(control) {
  return control.required ? control.label : `${control.label} (optional)`;
}

/** @param {Control} control */
function hintOf(control) {
  if (control.kind === "json") return `${control.hint} Enter JSON.`.trim();
  return control.kind === "lines" ? `${control.hint} Enter one per line.`.trim() : control.hint;
}

/** @param {Control} control @param {FormState} formState @param {Record<string, unknown>} needs */
function controlOf(control, { raws, set, readonly }, needs) {
  const raw = String(raws[control.path] ?? control.initial ?? "");
  const common = {
    ...needs,
    value: raw,
    required: control.required,
    onInput: (/** @type {{currentTarget: HTMLInputElement}} */ event) =>
      set(control.path, event.currentTarget.value),
  };
  if (control.kind === "choice") {
    return html`<select ...${common} disabled=${readonly}>
      <option value="">${control.required ? "Choose…" : "None"}</option>
      ${control.labels.map((label, at) => html`<option key=${at} value=${String(at)}>${label}</option>`)}
    </select>`;
  }
  if (["long", "lines", "json"].includes(control.kind)) {
    const code = control.kind === "json" ? "code" : "";
    return html`<textarea ...${common} class=${code} rows="3" readonly=${readonly}></textarea>`;
  }
  const number = control.kind === "number" ? { inputmode: "decimal" } : {};
  const example = control.schema.examples?.[0];
  return html`<input ...${common} ...${number} type=${control.input} readonly=${readonly}
    autocomplete="off" placeholder=${example === undefined ? undefined : `for example ${example}`} />`;
}

/** @param {{control: Control, formState: FormState, error?: string}} props */
function Checkbox({ control, formState, error }) {
  const checked = (formState.raws[control.path] ?? control.initial) === true;
  return html`<div class="field">
    <label class="row">
      <input type="checkbox" checked=${checked} disabled=${formState.readonly}
        aria-invalid=${error ? "true" : undefined}
        onChange=${(/** @type {{currentTarget: HTMLInputElement}} */ event) =>
          formState.set(control.path, event.currentTarget.checked)} />
      <span>${control.label}</span>
    </label>
    ${control.hint && html`<span class="hint">${control.hint}</span>`}
    ${error && html`<span class="wrong">${error}</span>`}
  </div>`;
}

/** @param {{control: Control, formState: FormState, error?: string}} props */
function CheckboxGroup({ control, formState, error }) {
  const raw = formState.raws[control.path] ?? control.initial;
  const chosen = new Set(Array.isArray(raw) ? raw : []);
  /** @param {string} at @param {boolean} checked */
  function choose(at, checked) {
    const now = new Set(chosen);
    if (checked) now.add(at);
    else now.delete(at);
    formState.set(control.path, [...now]);
  }
  return html`<fieldset class="ask several">
    <legend>${labelOf(control)}</legend>
    ${control.hint && html`<p class="hint">${control.hint}</p>`}
    ${control.labels.map(
      (label, at) => html`<label key=${at} class="row">
        <input type="checkbox" checked=${chosen.has(String(at))} disabled=${formState.readonly}
          aria-invalid=${error ? "true" : undefined}
          onChange=${(/** @type {{currentTarget: HTMLInputElement}} */ event) =>
            choose(String(at), event.currentTarget.checked)} />
        <span>${label}</span>
      </label>`,
    )}
    ${error && html`<p class="wrong">${error}</p>`}
  </fieldset>`;
}
