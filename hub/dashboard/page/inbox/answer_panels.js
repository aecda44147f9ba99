/** The panels for decisions that need more input: reject, patch, extend, ignore and hand over. */

import { Field } from "../parts/field.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { change } from "./drafts.js";
import { AT_DEADLINE } from "./hook_text.js";
import { anyProperty, patchableProperties } from "./patch.js";
import { handOver } from "./submit.js";

/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {import("./submit.js").Sending} Sending */
/**
 * close: closes the panel without sending.
 * @typedef {{sending: Sending, send: (decision: Decision) => void, close: () => void}} PanelProps
 */
/** @typedef {{currentTarget: HTMLInputElement}} Changed */

/** @type {Record<string, (props: PanelProps) => any>} */
const PANELS = {
  reject: Reject,
  patch: Patch,
  progress: Progress,
  ignore: Ignore,
  "hand-over": HandOver,
};

/** @param {Omit<PanelProps, "close">} props */
export function AnswerPanel(props) {
  const { draft } = props.sending;
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const close = () => {
    const opener = place.current?.parentElement?.querySelector('[aria-expanded="true"]');
    change(draft, { panel: "" });
    /** @type {HTMLElement | null | undefined} */ (opener)?.focus();
  };
  useEffect(() => {
    /** @type {HTMLElement | null | undefined} */
    const first = place.current?.querySelector("input, textarea, button");
    first?.focus({ preventScroll: false });
  }, []);
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  };
  const Panel = PANELS[draft.value.panel];
  return html`<div class="answer-panel" ref=${place} onKeyDown=${onKeyDown}>
    ${Panel && html`<${Panel} ...${props} close=${close} />`}
  </div>`;
}

/** @param {{close: () => void, children?: any}} props */
function PanelActions({ close, children }) {
  return html`<div class="row">
    ${children}
    <button type="button" class="plain" onClick=${close}>Cancel</button>
  </div>`;
}

/** @param {PanelProps} props */
function Reject({ sending, send, close }) {
  const { hook } = sending;
  const fails = hook.resource ? "The operation fails" : "The whole action fails";
  const effect =
    hook.point === "drift"
      ? "The resource stays as it is. Headgate asks again if its drift changes."
      : `${fails}. This cannot be undone.`;
  return html`<p>${effect}</p>
    <${PanelActions} close=${close}>
      <button type="button" class="danger" aria-disabled=${sending.draft.value.busy} onClick=${() => send("reject")}>Reject</button>
    <//>`;
}

/** @param {PanelProps} props */
function Patch({ sending, send, close }) {
  const { hook, draft } = sending;
  const adding = useSignal("");
  const { patch, errors, busy } = draft.value;
  const patchable = patchableProperties(hook);
  const added = Object.keys(patch).filter((name) => !patchable.some((item) => item.name === name));
  /** @param {string} name @param {string} text */
  const set = (name, text) => change(draft, { patch: { ...draft.value.patch, [name]: text } });
  const rows = [...patchable, ...added.map((name) => ({ name, now: "", hidden: false }))];
  const add = () => {
    const name = adding.value.trim();
    if (name && !rows.some((row) => row.name === name)) set(name, "");
    adding.value = "";
  };
  return html`<p>The operation continues with these values. They apply until the next stack update.</p>
    ${rows.map(
      ({
        name,
        now,
        hidden,
      }) => html`<${Field} key=${name} label=${name} error=${errors[`properties.${name}`]}
        hint=${hidden ? "The current value is hidden. Leave this empty to keep it." : undefined}>
        ${(/** @type {object} */ needs) => html`<textarea ...${needs} class="code" rows="1"
          spellcheck=${false} value=${patch[name] ?? now}
          onInput=${(/** @type {Changed} */ event) => set(name, event.currentTarget.value)}></textarea>`}
      <//>`,
    )}
    ${
      anyProperty(hook) &&
      html`<div class="row">
        <input aria-label="Another property" placeholder="Property name" value=${adding.value}
          onInput=${(/** @type {Changed} */ event) => {
            adding.value = event.currentTarget.value;
          }} />
        <button type="button" onClick=${add}>Add</button>
      </div>`
    }
    ${errors.properties && html`<p class="wrong">${errors.properties}</p>`}
    <${PanelActions} close=${close}><button type="button" class="first" aria-disabled=${busy} onClick=${() => send("patch")}>Continue with changes</button><//>`;
}

/** @param {PanelProps} props */
function Progress({ sending, send, close }) {
  const { hook, draft } = sending;
  const { extend, errors, busy } = draft.value;
  return html`<${Field} label="Time until the deadline" error=${errors.extend}
      hint=${`From now, for example 30m, 2h or 1d. Leave empty for the rule's timeout. At the deadline, ${AT_DEADLINE[hook.on_timeout]}.`}>
      ${(
        /** @type {object} */ needs,
      ) => html`<input ...${needs} value=${extend} size="8" autocomplete="off"
        onInput=${(/** @type {Changed} */ event) => change(draft, { extend: event.currentTarget.value })} />`}
    <//>
    <${PanelActions} close=${close}><button type="button" class="first" aria-disabled=${busy} onClick=${() => send("progress")}>Extend deadline</button><//>`;
}

/** @param {PanelProps} props */
function Ignore({ sending, send, close }) {
  const { draft } = sending;
  const { ignoreFor, errors, busy } = draft.value;
  return html`<${Field} label="Time" error=${errors["data.for"]}
      hint="For example 30m, 2h or 1d. All drift of the resource is left until then, also if it changes.">
      ${(
        /** @type {object} */ needs,
      ) => html`<input ...${needs} value=${ignoreFor} size="8" autocomplete="off"
        onInput=${(/** @type {Changed} */ event) => change(draft, { ignoreFor: event.currentTarget.value })} />`}
    <//>
    <${PanelActions} close=${close}><button type="button" class="first" aria-disabled=${busy} onClick=${() => send("ignore")}>Ignore drift</button><//>`;
}

/** @param {PanelProps} props */
function HandOver({ sending, close }) {
  const { draft } = sending;
  const { to, note, errors, busy } = draft.value;
  return html`<${Field} label="To" error=${errors.to} hint="This user or role can answer from now on. You can still answer.">
      ${(/** @type {object} */ needs) => html`<span class="row">
        <select aria-label="User or role" value=${to.kind}
          onChange=${(/** @type {Changed} */ event) =>
            change(draft, { to: { ...to, kind: event.currentTarget.value } })}>
          <option value="user">user</option>
          <option value="role">role</option>
        </select>
        <input ...${needs} value=${to.name} autocomplete="off"
          onInput=${(/** @type {Changed} */ event) =>
            change(draft, { to: { ...to, name: event.currentTarget.value } })} />
      </span>`}
    <//>
    <${Field} label="Note">
      ${(
        /** @type {object} */ needs,
      ) => html`<textarea ...${needs} rows="2" maxlength="4000" value=${note}
        onInput=${(/** @type {Changed} */ event) => change(draft, { note: event.currentTarget.value })}></textarea>`}
    <//>
    <${PanelActions} close=${close}>
      <button type="button" class="first" aria-disabled=${busy} onClick=${() => !busy && handOver(sending)}>
        Hand over
      </button>
    <//>`;
}
