/** One hook: a line that says what waits; and opened, all one needs to decide, and the answer. */

import { call, isAborted } from "../api/client.js";
import { session } from "../api/session.js";
import { href } from "../app/route.js";
import { Icon } from "../parts/icon.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { Answer } from "./answer.js";
import { Countdown } from "./countdown.js";
import { Facts, StackLink, WouldChange } from "./facts.js";
import { isMine } from "./rights.js";
import { Trail } from "./trail.js";
import { looksOf, outcome, pointInWords, subject } from "./words.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Entry} Entry */

/**
 * level: of its heading.
 * @param {{project: string, hook: Hook, open: boolean, onToggle: () => void, level: number}} props
 */
export function Card({ project, hook, open, onToggle, level }) {
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
      <${`h${level}`} id=${id} class="hook-title">
        <button type="button" class="plain hook-opens" aria-expanded=${open} onClick=${toggle}>
          <span class=${waits ? "gate pulses" : "gate"}><${Icon} name=${looksOf(hook)} /></span>
          <code class="breaks">${subject(hook)}</code>
          <span class="point">${pointInWords(hook.point)}</span>
        </button>
      <//>
      <span class="hook-of">
        <${StackLink} project=${project} hook=${hook} />
        ${hook.resource?.type && html`<span class="muted breaks">${hook.resource.type}</span>`}
      </span>
      <span class="hook-how">
        ${waits ? html`<${HowFar} hook=${hook} />` : html`<span class="outcome-line">${outcome(hook)}</span>`}
      </span>
    </div>
    ${open && html`<${Body} project=${project} hook=${hook} level=${level + 1} />`}
  </article>`;
}

/**
 * The height that a row has when its hook ends, in pixels: it keeps it, so that nothing below moves.
 * @param {boolean} waits
 */
function useHeight(waits) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const kept = useRef({ waits, height: 0 });
  // What stands there is still what it was: this is drawn in a moment.
  if (kept.current.waits && !waits)
    kept.current.height = place.current?.getBoundingClientRect().height ?? 0;
  kept.current.waits = waits;
  const release = () => {
    kept.current.height = 0;
  };
  return { place, height: kept.current.height, release };
}

/** @param {{hook: Hook}} props */
function HowFar({ hook }) {
  const { needed, given } = hook.approvals;
  return html`
    ${isMine(hook, session.value) && html`<span class="mine">for you</span>`}
    ${needed > 1 && html`<span class="approvals" title="approvals given, of those needed">${given} of ${needed} approvals</span>`}
    <${Countdown} hook=${hook} />
  `;
}

/**
 * level: of headings in it. page: it has a page to itself.
 * @param {{project: string, hook: Hook, level: number, page?: boolean}} props
 */
export function Body({ project, hook, level, page = false }) {
  const { said, wrong } = useSaid(project, hook, page);
  return html`<div class="hook-body">
    <div class="column">
      <${Facts} project=${project} hook=${hook} said=${said} />
      <${WouldChange} hook=${hook} level=${level} />
      ${!page && html`<a href=${href(project, "inbox", hook.id)}>A page of its own, with all that was said</a>`}
    </div>
    <div class="column">
      <${Answer} project=${project} hook=${hook} />
      ${page && html`<${Trail} said=${said} wrong=${wrong} />`}
    </div>
  </div>`;
}

/**
 * What was said to a hook, as far as anything was; read anew when it changes.
 * @param {string} project @param {Hook} hook @param {boolean} always
 */
function useSaid(project, hook, always) {
  const said = useSignal(/** @type {readonly Entry[]} */ ([]));
  const wrong = useSignal(/** @type {unknown} */ (null));
  const wanted = always || hook.assigned !== null;
  useEffect(() => {
    if (!wanted) return;
    const gone = new AbortController();
    call("GET", project, `/hooks/${hook.id}/decisions`, undefined, { signal: gone.signal })
      .then((found) => {
        said.value = found.decisions;
        wrong.value = null;
      })
      .catch((error) => {
        if (!isAborted(error)) wrong.value = error;
      });
    return () => gone.abort();
  }, [project, hook, wanted]);
  return { said: said.value, wrong: wrong.value };
}
