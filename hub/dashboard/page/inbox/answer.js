/**
 * The answer form of a hook: a button for each allowed decision and the requested data. Users who
 * may not answer see the approvers.
 */

import { session } from "../api/session.js";
import { Field } from "../parts/field.js";
import { FieldErrorHelp, ProblemBox } from "../parts/problem.js";
import { html, useEffect, useMemo, useRef } from "../vendor/preact.js";
import { AnswerPanel } from "./answer_panels.js";
import { DataForm, dataFormFor } from "./data_form.js";
import { change, draftOf, hasContent, resetDraft } from "./drafts.js";
import { approversText, pointInWords, subject } from "./hook_text.js";
import { ChangedNotice, LateNotice, Outcome } from "./outcome.js";
import { denialReason, hasApproved, offeredDecisions } from "./rights.js";
import { decide } from "./submit.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {import("./submit.js").Sending} Sending */
/** @typedef {import("./submit.js").DraftSignal} DraftSignal */

/** Decisions sent immediately; the others open a panel first. @type {[Decision, string][]} */
const IMMEDIATE_DECISIONS = [
  ["repair", "Repair"],
  ["continue", "Continue"],
  ["step", "Step"],
  ["run", "Run to end"],
  ["adopt", "Adopt observed values"],
];
/** Decisions whose button is emphasized. */
const FIRST = new Set(["continue", "repair"]);
/** @type {[Decision | "hand-over", import("./drafts.js").OpenPanel, string][]} */
const PANEL_DECISIONS = [
  ["patch", "patch", "Change properties…"],
  ["progress", "progress", "Extend deadline…"],
  ["ignore", "ignore", "Ignore for a time…"],
  ["hand-over", "hand-over", "Hand over…"],
  ["reject", "reject", "Reject…"],
];

/** @param {{project: string, hook: Hook}} props */
export function Answer({ project, hook }) {
  const draft = draftOf(hook);
  const form = useMemo(() => dataFormFor(hook), [hook.id]);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const { late, result, errors, busy } = draft.value;
  const over = late || hook.state !== "waiting";
  useFocus(place, over, errors);
  const sending = { project, hook, draft, form };
  const user = session.value;
  const why = denialReason(hook, user);
  return html`<section class="answer" aria-label=${`Answer: ${subject(hook)}, ${pointInWords(hook.point)}`} aria-busy=${busy} ref=${place} tabindex="-1">
    ${over && html`<${Outcome} hook=${hook} />`}
    ${over && (late || hasContent(draft.value)) && html`<${LateNotice} hook=${hook} draft=${draft} />`}
    <p class="result" role="status">${result}</p>
    ${!over && why && html`<p>${why} Approvers: ${approversText(hook)}.</p>`}
    ${!over && !why && hasApproved(hook, user) && html`<${ApprovedNotice} hook=${hook} />`}
    ${!over && !why && html`<${ChangedNotice} hook=${hook} draft=${draft} />`}
    ${(over ? late || hasContent(draft.value) : !why) && html`<${CommonFields} sending=${sending} over=${over} />`}
    ${over && (late || hasContent(draft.value)) && html`<${DiscardButton} hook=${hook} draft=${draft} />`}
    ${!over && !why && html`<${DecisionButtons} sending=${sending} />`}
  </section>`;
}

/**
 * Keeps the focus inside the form after an answer, and moves it to the first invalid field.
 * @param {{current: HTMLElement | null}} place @param {boolean} over @param {Record<string, string>} errors
 */
function useFocus(place, over, errors) {
  const previous = useRef(over);
  const inside = useRef(false);
  useEffect(() => {
    /** @param {FocusEvent} event */
    const look = (event) => {
      inside.current = place.current?.contains(/** @type {Node} */ (event.target)) ?? false;
    };
    addEventListener("focusin", look);
    return () => removeEventListener("focusin", look);
  }, []);
  useEffect(() => {
    const lost = document.activeElement === null || document.activeElement === document.body;
    if (over !== previous.current && inside.current && lost)
      place.current?.focus({ preventScroll: true });
    previous.current = over;
  }, [over]);
  useEffect(() => {
    /** @type {HTMLElement | null | undefined} */
    const first = place.current?.querySelector('[aria-invalid="true"]');
    first?.focus();
  }, [errors]);
}

/** @param {{hook: Hook}} props */
function ApprovedNotice({ hook }) {
  const { given, needed } = hook.approvals;
  return html`<p>
    You have approved (${given} of ${needed} approvals). Another approver must give the next one. You can
    still reject.
  </p>`;
}

/**
 * Fields of every answer: requested data and reason.
 * @param {{sending: Sending, over: boolean}} props
 */
function CommonFields({ sending, over }) {
  const { hook, draft, form } = sending;
  const { reason, data, errors, refusal, problem, busy } = draft.value;
  const approves = offeredDecisions(hook, session.value).includes("continue");
  /** @type {import("./data_form.js").FormState} */
  const formState = {
    raws: data,
    errors,
    readonly: over || busy,
    set: (/** @type {string} */ path, /** @type {import("./form.js").Raw} */ raw) =>
      change(draft, { data: { ...draft.value.data, [path]: raw } }),
  };
  return html`
    ${form && (over || approves) && html`<${DataForm} form=${form} formState=${formState} />`}
    <${Field} label="Reason (optional)" error=${errors.reason}>
      ${(/** @type {object} */ needs) => html`<textarea ...${needs} rows="2" maxlength="4000"
        value=${reason} readonly=${over || busy}
        onInput=${(/** @type {{currentTarget: HTMLTextAreaElement}} */ event) =>
          change(draft, { reason: event.currentTarget.value })}></textarea>`}
    <//>
    ${!over && html`<${ProblemBox} error=${problem} />`}
    ${!over && refusal && html`<${FieldErrorHelp} problem=${refusal} />`}
  `;
}

/** @param {{sending: Sending}} props */
function DecisionButtons({ sending }) {
  const { hook, draft } = sending;
  const { panel: openPanel, busy } = draft.value;
  const offered = offeredDecisions(hook, session.value);
  // At a drift hook, both words mean the same.
  const allowed = offered.filter((item) => item !== "continue" || !offered.includes("repair"));
  /** @param {Decision} decision */
  const send = (decision) => {
    if (!draft.value.busy) decide(sending, decision);
  };
  return html`
    <div class="answer-acts">
      ${IMMEDIATE_DECISIONS.filter(([decision]) => allowed.includes(decision)).map(
        ([decision, name]) => {
          const button = html`<button type="button"
          class=${FIRST.has(decision) ? "first" : ""} aria-disabled=${busy} onClick=${() => send(decision)}>${name}</button>`;
          return decision === "step"
            ? html`<${StepButton} button=${button} draft=${draft} />`
            : button;
        },
      )}
    </div>
    <div class="answer-acts">
        ${PANEL_DECISIONS.filter(
          ([decision]) => decision === "hand-over" || allowed.includes(decision),
        ).map(
          ([decision, panel, name]) => html`<button key=${decision} type="button"
            class=${decision === "reject" ? "danger" : ""} aria-expanded=${openPanel === panel}
            onClick=${() => change(draft, { panel: openPanel === panel ? "" : panel })}>
            ${name}
          </button>`,
        )}
    </div>
    ${openPanel && html`<${AnswerPanel} key=${openPanel} sending=${sending} send=${send} />`}
  `;
}

/**
 * The step button with its mode for nested stacks.
 * @param {{button: unknown, draft: DraftSignal}} props
 */
function StepButton({ button, draft }) {
  return html`<span class="joined">
    ${button}
    <select aria-label="Step mode" value=${draft.value.how}
      onChange=${(/** @type {{currentTarget: HTMLSelectElement}} */ event) =>
        change(draft, { how: event.currentTarget.value })}>
      <option value="over">over</option>
      <option value="into">into</option>
      <option value="out">out</option>
    </select>
  </span>`;
}

/** @param {{hook: Hook, draft: DraftSignal}} props */
function DiscardButton({ hook, draft }) {
  return html`<div class="answer-acts">
    <button type="button" onClick=${() => resetDraft(draft, hook)}>Discard draft</button>
  </div>`;
}
