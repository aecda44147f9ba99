/** What is asked for before some answers go out: other properties, how long, to whom, and whether. */

import { Field } from "../parts/field.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { change } from "./drafts.js";
import { anyProperty, patchable } from "./patch.js";
import { handOver } from "./sending.js";
import { AT_DEADLINE } from "./words.js";

/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {import("./sending.js").Sending} Sending */
/** close: nothing is sent. @typedef {{sending: Sending, send: (decision: Decision) => void, close: () => void}} PanelProps */
/** @typedef {{currentTarget: HTMLInputElement}} Changed */

/** @type {Record<string, (props: PanelProps) => any>} */
const PANELS = { reject: Reject, patch: Patch, progress: Progress, "hand-over": HandOver };

/** @param {Omit<PanelProps, "close">} props */
export function Asking(props) {
  const { draft } = props.sending;
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const close = () => {
    const opener = place.current?.parentElement?.querySelector('[aria-expanded="true"]');
    change(draft, { asks: "" });
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
  const Panel = PANELS[draft.value.asks];
  return html`<div class="asking" ref=${place} onKeyDown=${onKeyDown}>
    ${Panel && html`<${Panel} ...${props} close=${close} />`}
  </div>`;
}

/** @param {{close: () => void, children?: any}} props */
function Acts({ close, children }) {
  return html`<div class="row">
    ${children}
    <button type="button" class="plain" onClick=${close}>Cancel</button>
  </div>`;
}

/** @param {PanelProps} props */
function Reject({ sending, send, close }) {
  const fails = sending.hook.resource ? "Its operation fails" : "The whole action fails";
  return html`<p>${fails}, as if it had been tried. This cannot be taken back.</p>
    <${Acts} close=${close}>
      <button type="button" class="danger" onClick=${() => send("reject")}>Reject it</button>
    <//>`;
}

/** @param {PanelProps} props */
function Patch({ sending, send, close }) {
  const { hook, draft } = sending;
  const adding = useSignal("");
  const { patch, wrongs } = draft.value;
  const there = patchable(hook);
  const added = Object.keys(patch).filter((name) => !there.some((one) => one.name === name));
  /** @param {string} name @param {string} text */
  const set = (name, text) => change(draft, { patch: { ...draft.value.patch, [name]: text } });
  const rows = [...there, ...added.map((name) => ({ name, now: "", hidden: false }))];
  const add = () => {
    const name = adding.value.trim();
    if (name && !rows.some((one) => one.name === name)) set(name, "");
    adding.value = "";
  };
  return html`<p>It goes on with what you change here, until the next update.</p>
    ${rows.map(
      ({
        name,
        now,
        hidden,
      }) => html`<${Field} key=${name} label=${name} wrong=${wrongs[`properties.${name}`]}
        hint=${hidden ? "What stands there is hidden. Leave this empty to keep it." : undefined}>
        ${(/** @type {object} */ needs) => html`<textarea ...${needs} class="code" rows="1"
          spellcheck=${false} value=${patch[name] ?? now}
          onInput=${(/** @type {Changed} */ event) => set(name, event.currentTarget.value)}></textarea>`}
      <//>`,
    )}
    ${
      anyProperty(hook) &&
      html`<div class="row">
        <input aria-label="Another property" placeholder="another property" value=${adding.value}
          onInput=${(/** @type {Changed} */ event) => {
            adding.value = event.currentTarget.value;
          }} />
        <button type="button" onClick=${add}>Add</button>
      </div>`
    }
    ${wrongs.properties && html`<p class="wrong">${wrongs.properties}</p>`}
    <${Acts} close=${close}><button type="button" class="first" onClick=${() => send("patch")}>Continue with these</button><//>`;
}

/** @param {PanelProps} props */
function Progress({ sending, send, close }) {
  const { hook, draft } = sending;
  const { extend, wrongs } = draft.value;
  return html`<${Field} label="Wait for" wrong=${wrongs.extend}
      hint=${`From now on: 30m, 2h, 1d. Empty: as long as the rule says. Then ${AT_DEADLINE[hook.on_timeout]}.`}>
      ${(
        /** @type {object} */ needs,
      ) => html`<input ...${needs} value=${extend} size="8" autocomplete="off"
        onInput=${(/** @type {Changed} */ event) => change(draft, { extend: event.currentTarget.value })} />`}
    <//>
    <${Acts} close=${close}><button type="button" class="first" onClick=${() => send("progress")}>Say that you are at it</button><//>`;
}

/** @param {PanelProps} props */
function HandOver({ sending, close }) {
  const { draft } = sending;
  const { to, note, wrongs } = draft.value;
  return html`<${Field} label="To" wrong=${wrongs.to} hint="They may answer from then on; so may you.">
      ${(/** @type {object} */ needs) => html`<span class="row">
        <select aria-label="Somebody or a role" value=${to.kind}
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
    <${Acts} close=${close}>
      <button type="button" class="first" onClick=${() => !draft.value.busy && handOver(sending)}>
        Hand it over
      </button>
    <//>`;
}
