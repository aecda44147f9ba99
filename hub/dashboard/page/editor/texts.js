/** The tabs of the stack definition and the list of errors. */

import { html, useEffect, useMemo, useRef, useSignal } from "../vendor/preact.js";
import { NAME } from "./apply.js";
import { Code } from "./code.js";
import { Files } from "./files.js";
import { Findings } from "./findings.js";
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
  const which = whichOf(tab.value, file.value, texts.files);
  const findings = check.findings.value;
  const marks = useMemo(
    () =>
      findings
        .filter((one) => one.spot.text === which)
        .map(({ finding, spot }) => ({ ...spot, message: messageOf(finding) })),
    [findings, which],
  );

  /** @param {import("./locations.js").Spot} spot */
  function show(spot) {
    if (spot.text === "name") return name.current?.focus();
    tab.value = spot.text.startsWith("files/") ? "files" : spot.text;
    if (spot.text.startsWith("files/")) file.value = spot.text.slice("files/".length);
    goto.value = { from: spot.from, to: spot.to };
  }

  const tabs = readonly ? TABS.filter(([one]) => one !== "options") : TABS;
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
      <div class="edit-code" hidden=${which === ""}>
        <${Code} name=${which || "template"} label=${labelOf(which)} text=${textByName(texts, which || "template")}
          read=${(/** @type {string} */ one) => textByName(draft.texts.peek(), one)}
          marks=${marks} readonly=${readonly} goto=${goto.value} onWrite=${draft.write} />
      </div>
    </div>
    ${!readonly && html`<${Findings} findings=${findings} show=${show} />`}
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

/** @param {string} which */
function labelOf(which) {
  if (which.startsWith("files/")) return `File ${which.slice("files/".length)}`;
  return which === "environment" ? "Environment" : "Template";
}

/** @param {import("./locations.js").Finding} finding */
function messageOf({ reason, remedy }) {
  return remedy ? `${reason.replace(/\.$/, "")}. ${remedy}` : reason;
}

/** Number of findings by tab. @param {{spot: import("./locations.js").Spot}[]} findings */
function countsOf(findings) {
  /** @type {Record<string, number>} */
  const found = {};
  for (const { spot } of findings) {
    const tab = spot.text.startsWith("files/") ? "files" : spot.text;
    found[tab] = (found[tab] ?? 0) + 1;
  }
  return found;
}

/**
 * @param {{tabs: [string, string][], tab: import("../vendor/preact.js").Signal<string>,
 *   counts: Record<string, number>}} props
 */
function Tabs({ tabs, tab, counts }) {
  /** @param {KeyboardEvent} event */
  function moved(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([one]) => one === tab.value);
    const [next] = tabs[(at + step + tabs.length) % tabs.length] ?? ["template"];
    tab.value = next;
    document.getElementById(`tab-${next}`)?.focus();
  }
  return html`<div class="tabs" role="tablist" aria-label="Stack definition" onKeyDown=${moved}>
    ${tabs.map(
      ([one, title]) => html`<button key=${one} role="tab" id=${`tab-${one}`} aria-controls="panel"
        aria-selected=${one === tab.value ? "true" : "false"} tabindex=${one === tab.value ? 0 : -1}
        onClick=${() => {
          tab.value = one;
        }}>${title}${counts[one] && html`<span class="wrong-count">${counts[one]}<span class="only-read"> errors</span></span>`}</button>`,
    )}
  </div>`;
}

/** @param {{draft: Draft, field: any, findings: {finding: any, spot: import("./locations.js").Spot}[]}} props */
function Name({ draft, field, findings }) {
  const wrong = findings.find((one) => one.spot.text === "name" && draft.name.value !== "");
  return html`<div class="field">
    <label class="label" for=${NAME}>Stack name</label>
    <input id=${NAME} ref=${field} value=${draft.name.value} autocomplete="off" spellcheck=${false}
      aria-invalid=${wrong ? "true" : undefined} aria-describedby=${wrong ? `${NAME}-wrong` : undefined}
      onInput=${(/** @type {any} */ event) => {
        draft.name.value = event.currentTarget.value;
      }} />
    ${wrong && html`<span class="wrong" id=${`${NAME}-wrong`}>${messageOf(wrong.finding)}</span>`}
  </div>`;
}
