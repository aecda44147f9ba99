/** The tabs of the stack definition and the list of errors. */

import { withCode } from "../parts/code_text.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../vendor/preact.js";
import { NAME } from "./apply.js";
import { Code } from "./code.js";
import { Files } from "./files.js";
import { textByName } from "./locations.js";
import { OptionsForm } from "./options.js";
import { ParametersForm } from "./parameters.js";

/**
 * @typedef {import("./draft.js").Draft} Draft
 * @typedef {ReturnType<typeof import("./preview.js").livePreview>} Check
 */

/** @type {[string, string][]} */
const TABS = [
  ["template", "Template"],
  ["environment", "Environment"],
  ["files", "Files"],
  ["parameters", "Parameters"],
  ["options", "Options"],
];

/** @param {{draft: Draft, check: Check, isNew: boolean, readonly: boolean}} props */
export function Texts({ draft, check, isNew, readonly }) {
  const tab = useSignal("template");
  const file = useSignal(Object.keys(draft.texts.value.files)[0] ?? "");
  const goto = useSignal(/** @type {{from: number, to: number} | null} */ (null));
  const name = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    if (isNew) name.current?.focus();
  }, []);
  const texts = draft.texts.value;
  const selected = whichOf(tab.value, file.value, texts.files);
  const findings = check.findings.value;
  const marks = useMemo(
    () =>
      findings
        .filter((finding) => finding.spot.text === selected)
        .map(({ finding, spot }) => ({ ...spot, message: messageOf(finding) })),
    [findings, selected],
  );

  /** @param {import("./locations.js").Spot} spot */
  function show(spot) {
    if (spot.text === "name") return name.current?.focus();
    tab.value = spot.text.startsWith("files/") ? "files" : spot.text;
    if (spot.text.startsWith("files/")) file.value = spot.text.slice("files/".length);
    goto.value = { from: spot.from, to: spot.to };
  }

  const tabs = readonly ? TABS.filter(([name]) => name !== "options") : TABS;
  return html`<div class="edit-texts">
    ${isNew && html`<${Name} draft=${draft} field=${name} findings=${findings} />`}
    <${Tabs} tabs=${tabs} tab=${tab} counts=${countsOf(findings)} />
    <div role="tabpanel" id="panel" aria-labelledby=${`tab-${tab.value}`} class="edit-panel">
      ${tab.value === "files" && html`<${Files} draft=${draft} file=${file} readonly=${readonly} />`}
      ${
        tab.value === "parameters" &&
        html`<${ParametersForm} draft=${draft} findings=${findings} readonly=${readonly} isNew=${isNew} />`
      }
      ${tab.value === "options" && html`<${OptionsForm} draft=${draft} findings=${findings} isNew=${isNew} />`}
      <div class="edit-code" hidden=${selected === ""}>
        <${Code} name=${selected || "template"} label=${labelOf(selected)} text=${textByName(texts, selected || "template")}
          read=${(/** @type {string} */ item) => textByName(draft.texts.peek(), item)}
          marks=${marks} readonly=${readonly} goto=${goto.value} onWrite=${draft.write} />
      </div>
    </div>
    ${!readonly && html`<${Findings} label="Errors" findings=${findings} show=${show} />`}
    ${!readonly && html`<${Findings} label="Warnings" findings=${check.warnings.value} show=${show} />`}
  </div>`;
}

/**
 * The text shown in a tab; "" for a form.
 * @param {string} tab @param {string} file @param {Record<string, string>} files
 */
function whichOf(tab, file, files) {
  if (tab === "template" || tab === "environment") return tab;
  return tab === "files" && file in files ? `files/${file}` : "";
}

/** @param {string} selected */
function labelOf(selected) {
  if (selected.startsWith("files/")) return `File ${selected.slice("files/".length)}`;
  return selected === "environment" ? "Environment" : "Template";
}

/** @param {import("./locations.js").Finding} finding */
function messageOf({ reason, remedy }) {
  return remedy ? `${reason.replace(/\.$/, "")}. ${remedy}` : reason;
}

/** Number of findings by tab. @param {{spot: import("./locations.js").Spot}[]} findings */
function countsOf(findings) {
  /** @type {Record<string, number>} */
  const result = {};
  for (const { spot } of findings) {
    const tab = spot.text.startsWith("files/") ? "files" : spot.text;
    result[tab] = (result[tab] ?? 0) + 1;
  }
  return result;
}

/**
 * @param {{tabs: [string, string][], tab: import("../vendor/preact.js").Signal<string>,
 *   counts: Record<string, number>}} props
 */
function Tabs({ tabs, tab, counts }) {
  /** @param {KeyboardEvent} event */
  function onKeyDown(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([name]) => name === tab.value);
    const [next] = tabs[(at + step + tabs.length) % tabs.length] ?? ["template"];
    tab.value = next;
    document.getElementById(`tab-${next}`)?.focus();
  }
  return html`<div class="tabs" role="tablist" aria-label="Stack definition" onKeyDown=${onKeyDown}>
    ${tabs.map(
      ([
        name,
        title,
      ]) => html`<button key=${name} role="tab" id=${`tab-${name}`} aria-controls="panel"
        aria-selected=${name === tab.value ? "true" : "false"} tabindex=${name === tab.value ? 0 : -1}
        onClick=${() => {
          tab.value = name;
        }}>${title}${counts[name] && html`<span class="wrong-count">${counts[name]}<span class="only-read"> errors</span></span>`}</button>`,
    )}
  </div>`;
}

/** @param {{draft: Draft, field: any, findings: {finding: any, spot: import("./locations.js").Spot}[]}} props */
function Name({ draft, field, findings }) {
  const error = findings.find((finding) => finding.spot.text === "name" && draft.name.value !== "");
  return html`<div class="field">
    <label class="label" for=${NAME}>Stack name</label>
    <input id=${NAME} ref=${field} value=${draft.name.value} autocomplete="off" spellcheck=${false}
      aria-invalid=${error ? "true" : undefined} aria-describedby=${error ? `${NAME}-wrong` : undefined}
      onInput=${(/** @type {any} */ event) => {
        draft.name.value = event.currentTarget.value;
      }} />
    ${error && html`<span class="wrong" id=${`${NAME}-wrong`}>${messageOf(error.finding)}</span>`}
  </div>`;
}

/**
 * @typedef {{finding: import("./locations.js").Finding, spot: import("./locations.js").Spot}} Found
 * @param {{label: string, findings: Found[], show: (spot: import("./locations.js").Spot) => void}} props
 */
function Findings({ label, findings, show }) {
  return html`<section class="edit-findings" data-kind=${label} aria-label=${label} aria-live="polite">
    ${
      findings.length === 0
        ? null
        : html`<ul>
            ${findings.map(
              (
                { finding, spot },
                index,
              ) => html`<li key=${`${index} ${finding.place} ${finding.reason}`}>
                <button class="plain" onClick=${() => show(spot)}>
                  <span class="where">${where(spot)}</span>
                  <span class="breaks">
                    ${finding.place && html`<code>${finding.place}</code>${": "}`}${withCode(finding.reason)}
                    ${finding.remedy && html` <span class="remedy">${withCode(finding.remedy)}</span>`}
                    ${finding.quote && html`<code class="quote">${finding.quote}</code>`}
                  </span>
                </button>
              </li>`,
            )}
          </ul>`
    }
  </section>`;
}

/** @param {import("./locations.js").Spot} spot */
function where({ text, line }) {
  const named = text.startsWith("files/") ? text.slice("files/".length) : text;
  return line > 0 ? `${named} ${line}` : named;
}
