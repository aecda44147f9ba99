/** The form fields for the data that a rule requests. */

import { Field } from "../parts/field.js";
import { html } from "../vendor/preact.js";
import { formOf } from "./form.js";
import { placeOf } from "./submit.js";

/** @typedef {import("./form.js").Control} Control */
/** @typedef {import("./form.js").Raw} Raw */
/**
 * set: changes a value. stays: the fields are read-only.
 * @typedef {{raws: import("./form.js").Raws, wrongs: Record<string, string>, stays: boolean,
 *   set: (path: string, raw: Raw) => void}} Filling
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
  const chosen = choiceOf(hook);
  if (!chosen) return hook.ask ? formOf(hook.ask) : null;
  const schema = hook.ask ?? { type: "object", properties: {} };
  return formOf({ ...schema, properties: { ...schema.properties, ...chosen } });
}

/** @param {import("../api/documents.js").Hook} hook */
function choiceOf(hook) {
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

/** @param {{form: Control, filling: Filling}} props */
export function DataForm({ form, filling }) {
  const { title, description } = form.schema;
  const top = filling.wrongs.data;
  if (form.kind !== "group") return html`<${One} of=${form} filling=${filling} />`;
  return html`<fieldset class="ask">
    <legend>${title ?? "Requested data"}</legend>
    ${description && html`<p class="hint">${description}</p>`}
    ${top && html`<p class="wrong">${top}</p>`}
    ${form.children.map((one) => html`<${One} key=${one.path} of=${one} filling=${filling} />`)}
  </fieldset>`;
}

/** @param {{of: Control, filling: Filling}} props */
function One({ of, filling }) {
  const wrong = filling.wrongs[placeOf(of.path)];
  if (of.kind === "group") {
    return html`<fieldset class="ask">
      <legend>${of.label}${!of.required && html` <span class="hint">(optional)</span>`}</legend>
      ${of.hint && html`<p class="hint">${of.hint}</p>`}
      ${of.children.map((one) => html`<${One} key=${one.path} of=${one} filling=${filling} />`)}
    </fieldset>`;
  }
  if (of.kind === "flag") return html`<${Flag} of=${of} filling=${filling} wrong=${wrong} />`;
  if (of.kind === "choices") return html`<${Several} of=${of} filling=${filling} wrong=${wrong} />`;
  return html`<${Field} label=${labelled(of)} hint=${hintOf(of)} wrong=${wrong}>
    ${(/** @type {Record<string, unknown>} */ needs) => controlOf(of, filling, needs)}
  <//>`;
}

/** @param {Control} of */
function labelled(of) {
  return of.required ? of.label : `${of.label} (optional)`;
}

/** @param {Control} of */
function hintOf(of) {
  if (of.kind === "json") return `${of.hint} Enter JSON.`.trim();
  return of.kind === "lines" ? `${of.hint} Enter one per line.`.trim() : of.hint;
}

/** @param {Control} of @param {Filling} filling @param {Record<string, unknown>} needs */
function controlOf(of, { raws, set, stays }, needs) {
  const raw = String(raws[of.path] ?? of.initial ?? "");
  const common = {
    ...needs,
    value: raw,
    required: of.required,
    onInput: (/** @type {{currentTarget: HTMLInputElement}} */ event) =>
      set(of.path, event.currentTarget.value),
  };
  if (of.kind === "choice") {
    return html`<select ...${common} disabled=${stays}>
      <option value="">${of.required ? "Choose…" : "None"}</option>
      ${of.labels.map((label, at) => html`<option key=${at} value=${String(at)}>${label}</option>`)}
    </select>`;
  }
  if (["long", "lines", "json"].includes(of.kind)) {
    const code = of.kind === "json" ? "code" : "";
    return html`<textarea ...${common} class=${code} rows="3" readonly=${stays}></textarea>`;
  }
  const number = of.kind === "number" ? { inputmode: "decimal" } : {};
  const example = of.schema.examples?.[0];
  return html`<input ...${common} ...${number} type=${of.input} readonly=${stays}
    autocomplete="off" placeholder=${example === undefined ? undefined : `for example ${example}`} />`;
}

/** @param {{of: Control, filling: Filling, wrong?: string}} props */
function Flag({ of, filling, wrong }) {
  const checked = (filling.raws[of.path] ?? of.initial) === true;
  return html`<div class="field">
    <label class="row">
      <input type="checkbox" checked=${checked} disabled=${filling.stays}
        aria-invalid=${wrong ? "true" : undefined}
        onChange=${(/** @type {{currentTarget: HTMLInputElement}} */ event) =>
          filling.set(of.path, event.currentTarget.checked)} />
      <span>${of.label}</span>
    </label>
    ${of.hint && html`<span class="hint">${of.hint}</span>`}
    ${wrong && html`<span class="wrong">${wrong}</span>`}
  </div>`;
}

/** @param {{of: Control, filling: Filling, wrong?: string}} props */
function Several({ of, filling, wrong }) {
  const raw = filling.raws[of.path] ?? of.initial;
  const chosen = new Set(Array.isArray(raw) ? raw : []);
  /** @param {string} at @param {boolean} checked */
  function choose(at, checked) {
    const now = new Set(chosen);
    if (checked) now.add(at);
    else now.delete(at);
    filling.set(of.path, [...now]);
  }
  return html`<fieldset class="ask several">
    <legend>${labelled(of)}</legend>
    ${of.hint && html`<p class="hint">${of.hint}</p>`}
    ${of.labels.map(
      (label, at) => html`<label key=${at} class="row">
        <input type="checkbox" checked=${chosen.has(String(at))} disabled=${filling.stays}
          aria-invalid=${wrong ? "true" : undefined}
          onChange=${(/** @type {{currentTarget: HTMLInputElement}} */ event) =>
            choose(String(at), event.currentTarget.checked)} />
        <span>${label}</span>
      </label>`,
    )}
    ${wrong && html`<p class="wrong">${wrong}</p>`}
  </fieldset>`;
}
