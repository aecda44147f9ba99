/** One hook in the inbox: a summary row that expands to details and answer form. */

import { session } from "../api/session.js";
import { href } from "../app/route.js";
import { Breakable } from "../parts/breakable.js";
import { Icon } from "../parts/icon.js";
import { html, useRef } from "../vendor/preact.js";
import { Answer } from "./answer.js";
import { Countdown } from "./countdown.js";
import { DecisionHistory, useDecisionHistory } from "./decision_history.js";
import { Facts, PlannedChanges, StackLink } from "./facts.js";
import { badgeStateOf, outcomeText, pointInWords, subject } from "./hook_text.js";
import { isForUser } from "./rights.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/**
 * level: heading level. select: the checkbox in a list.
 * @param {{project: string, hook: Hook, open: boolean, onToggle: () => void, level: number, select?: unknown}} props
 */
export function Card({ project, hook, open, onToggle, level, select }) {
  const waits = hook.state === "waiting";
  const { place, height, release } = useHeight(waits);
  const toggle = () => {
    release();
    onToggle();
  };
  const id = `hook-${hook.id}`;
  return html`<article class="hook card" data-state=${hook.state} data-hook=${hook.id} aria-labelledby=${id}
    ref=${place} style=${height ? { minHeight: `${height}px` } : undefined}>
    <div class="hook-head">
      ${select}
      <${`h${level}`} id=${id} class="hook-title">
        <button type="button" class="plain hook-opens" aria-expanded=${open} onClick=${toggle}>
          <span class=${waits ? "gate pulses" : "gate"}><${Icon} name=${badgeStateOf(hook)} /></span>
          <code class="breaks"><${Breakable} text=${subject(hook)} /></code>
          <span class="point">${pointInWords(hook.point)}</span>
        </button>
      <//>
      <span class="hook-of">
        <${StackLink} project=${project} hook=${hook} />
        ${hook.resource?.type && html`<span class="muted breaks"><${Breakable} text=${hook.resource.type} /></span>`}
      </span>
      <span class="hook-how">
        ${waits ? html`<${HookProgress} hook=${hook} />` : html`<span class="outcome-line">${outcomeText(hook)}</span>`}
      </span>
    </div>
    ${open && html`<${HookBody} project=${project} hook=${hook} level=${level + 1} />`}
  </article>`;
}

/**
 * Keeps the height of a row in pixels when its hook ends, so that the rows below do not move.
 * @param {boolean} waits
 */
function useHeight(waits) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const kept = useRef({ waits, height: 0 });
  // The DOM still shows the previous state during this render.
  if (kept.current.waits && !waits)
    kept.current.height = place.current?.getBoundingClientRect().height ?? 0;
  kept.current.waits = waits;
  const release = () => {
    kept.current.height = 0;
  };
  return { place, height: kept.current.height, release };
}

/** @param {{hook: Hook}} props */
function HookProgress({ hook }) {
  const { needed, given } = hook.approvals;
  return html`
    ${isForUser(hook, session.value) && html`<span class="mine">for you</span>`}
    ${needed > 1 && html`<span class="approvals" title="Approvals given, of those required">${given} of ${needed} approvals</span>`}
    <${Countdown} hook=${hook} />
  `;
}

/**
 * level: heading level. page: shown on its own page.
 * @param {{project: string, hook: Hook, level: number, page?: boolean}} props
 */
export function HookBody({ project, hook, level, page = false }) {
  const { history, failure } = useDecisionHistory(project, hook, page);
  return html`<div class="hook-body">
    <div class="column">
      <${Facts} project=${project} hook=${hook} history=${history} />
      <${PlannedChanges} hook=${hook} level=${level} />
      ${!page && html`<a href=${href(project, "inbox", hook.id)}>Open hook details</a>`}
    </div>
    <div class="column">
      <${Answer} project=${project} hook=${hook} />
      ${page && html`<${DecisionHistory} history=${history} failure=${failure} />`}
    </div>
  </div>`;
}
