/** The Parameters tab: a form that edits the parameters in the environment text. */

import { Field } from "../parts/field.js";
import { html, useMemo, useSignal } from "../vendor/preact.js";
import { controlText, fieldsOf, parseControlText } from "./fields.js";
import { parameterOf } from "./locations.js";
import { MASK, parameterValues, withValue } from "./parameter_values.js";
import { parseValue } from "./yaml.js";

/**
 * @typedef {import("./fields.js").Field} FieldDefinition
 * @param {{draft: import("./draft.js").Draft, readonly: boolean, isNew: boolean,
 *   findings: import("./texts.js").Found[]}} props
 */
export function ParametersForm({ draft, findings, readonly, isNew }) {
  const { template, environment } = draft.texts.value;
  const read = useMemo(() => parseValue(template), [template]);
  const values = useMemo(() => parameterValues(environment), [environment]);
  if (read === undefined) return html`<p>The template is not valid YAML. Fix it first.</p>`;
  if (values === undefined) return html`<p>The environment is not valid YAML. Fix it first.</p>`;
  const fields = fieldsOf(read);
  if (fields.length === 0) return html`<p class="muted">The template has no parameters.</p>`;
  /** @param {FieldDefinition} field @param {unknown} value */
  function set(field, value) {
    const text = withValue(draft.texts.value.environment, field.name, value);
    if (text !== null) draft.write("environment", text);
    return text !== null;
  }
  const before = isNew ? {} : (parameterValues(draft.initial.value.texts.environment) ?? {});
  const groups = [...new Set(fields.map((field) => field.group))];
  return html`<div class="edit-form column">
    ${groups.map(
      (group) => html`<section key=${group} class="column">
        ${group && html`<h3>${group}</h3>`}
        ${fields
          .filter((field) => field.group === group)
          .map(
            (
              field,
            ) => html`<${Parameter} key=${field.name} field=${field} value=${values[field.name]}
              isSet=${field.name in values} error=${errorOf(field, findings)} readonly=${readonly} kept=${before[field.name] === MASK}
              set=${(/** @type {unknown} */ value) => set(field, value)} />`,
          )}
      </section>`,
    )}
  </div>`;
}

/** @param {FieldDefinition} field @param {import("./texts.js").Found[]} findings */
function errorOf(field, findings) {
  const match = findings.find(
    ({ finding }) =>
      parameterOf(finding) === field.name || finding.place === `parameters.${field.name}`,
  );
  return match?.finding.reason ?? "";
}

/**
 * kept: the server has a hidden value that can stay.
 * @param {{field: FieldDefinition, value: unknown, isSet: boolean, error: string, readonly: boolean,
 *   kept: boolean, set: (value: unknown) => boolean}} props
 */
function Parameter({ field, value, isSet, error, readonly, kept, set }) {
  const inputError = useSignal("");
  const fallback = field.fallback === undefined ? "" : controlText(field, field.fallback);
  /** @param {string} text */
  function changed(text) {
    inputError.value = "";
    try {
      if (!set(parseControlText(field, text)))
        inputError.value = "This value cannot be changed here. Edit the Environment tab.";
    } catch (error) {
      inputError.value = `Not valid JSON: ${error instanceof Error ? error.message : error}`;
    }
  }
  const hints = [
    field.description,
    ...field.rules,
    field.immutable ? "immutable after creation" : "",
    !isSet && fallback !== "" && !field.hidden ? `default: ${fallback}` : "",
  ].filter(Boolean);
  const name = field.label === field.name ? field.name : `${field.label} (${field.name})`;
  if (kept && value === MASK)
    return html`<${KeptValue} name=${name} hints=${hints} readonly=${readonly} change=${() => set("")} />`;
  const removed = () => {
    inputError.value = "";
    set(kept ? MASK : undefined);
  };
  const without = kept ? "Keep current value" : fallback === "" ? "Remove value" : "Use default";
  return html`<div class="edit-parameter">
    <${Field} label=${name} hint=${hints.join(" · ")} error=${inputError.value || error}>
      ${(
        /** @type {object} */ needs,
      ) => html`<${Control} field=${field} value=${isSet ? controlText(field, value) : ""}
        isSet=${isSet} fallback=${fallback} readonly=${readonly} changed=${changed} needs=${needs} />`}
    <//>
    ${
      isSet &&
      !readonly &&
      html`<button class="plain" onClick=${removed} aria-label=${`${without}: ${field.name}`}>${without}</button>`
    }
  </div>`;
}

/** @param {{name: string, hints: string[], readonly: boolean, change: () => void}} props */
function KeptValue({ name, hints, readonly, change }) {
  return html`<div class="edit-parameter">
    <div class="field">
      <span class="label">${name}</span>
      <span class="row">Hidden value, unchanged.
        ${!readonly && html`<button onClick=${change} aria-label=${`Change ${name}`}>Change</button>`}</span>
      ${hints.length > 0 && html`<span class="hint">${hints.join(" · ")}</span>`}
    </div>
  </div>`;
}

/**
 * @param {{field: FieldDefinition, value: string, isSet: boolean, fallback: string, readonly: boolean,
 *   changed: (text: string) => void, needs: Record<string, unknown>}} props
 */
function Control({ field, value, isSet, fallback, readonly, changed, needs }) {
  const listen = {
    onInput: (/** @type {any} */ event) => changed(event.currentTarget.value),
  };
  const choices = choicesOf(field);
  if (choices) {
    return html`<select ...${needs} disabled=${readonly} value=${isSet ? value : ""}
      onChange=${(/** @type {any} */ event) => changed(event.currentTarget.value)}>
      ${!isSet && html`<option value="" disabled selected>${fallback ? `(${fallback})` : "Choose…"}</option>`}
      ${isSet && !choices.includes(value) && html`<option value=${value} selected>${value}</option>`}
      ${choices.map((choice) => html`<option key=${choice} value=${choice} selected=${isSet && choice === value}>${choice}</option>`)}
    </select>`;
  }
  if (field.kind === "json")
    return html`<textarea ...${needs} ...${listen} rows="4" readonly=${readonly} spellcheck=${false}
      class="code" defaultValue=${value} placeholder=${field.hidden ? "" : fallback}></textarea>`;
  return html`<input ...${needs} ...${listen} type=${field.hidden ? "password" : "text"} value=${value}
    readonly=${readonly} spellcheck=${false} autocomplete=${field.hidden ? "new-password" : "off"}
    inputmode=${field.kind === "number" ? "decimal" : undefined} placeholder=${field.hidden ? "" : fallback} />`;
}

/** The options of a field; null if any value is allowed. @param {FieldDefinition} field */
function choicesOf(field) {
  if (field.hidden) return null;
  if (field.allowed.length > 0 && field.kind !== "list" && field.kind !== "json")
    return field.allowed.map(String);
  return field.kind === "boolean" ? ["true", "false"] : null;
}
