/** The Events tab: events newest first with filters, updated live. */

import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Breakable } from "../parts/breakable.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { History } from "../timeline/history.js";
import { html, useEffect, useMemo, useSignal } from "../vendor/preact.js";
import { eventText, TONE_LABELS, toneOf } from "./event_text.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("./view_state.js").ViewState} ViewState */

const PAGE = 200;
/** Filters by the second part of the event type. */
const KINDS = { stack: "stacks", resource: "resources", hook: "hooks", delivery: "deliveries" };

/** @param {{viewState: ViewState, show: (view: string) => void}} props */
export function Events({ viewState, show }) {
  const { watched } = viewState;
  const number = watched.traversal.value?.number ?? 0;
  const history = useMemo(() => new History(watched, number), [watched, number]);
  const kinds = useSignal(/** @type {string[]} */ ([]));
  const search = useSignal("");
  const many = useSignal(PAGE);
  useEffect(() => {
    if (number > 0) history.read();
    return () => history.close();
  }, [history]);
  const all = newestFirst(history.events.value, watched.events.value);
  const fitting = matching(all, kinds.value, search.value, eventText);
  /** @param {string} kind */
  const toggle = (kind) => {
    kinds.value = kinds.value.includes(kind)
      ? kinds.value.filter((item) => item !== kind)
      : [...kinds.value, kind];
  };
  return html`<section class="column" aria-label="Events">
    <div class="row stack-filter">
      <label class="row stack-search"><${Icon} name="search" label="Search" />
        <input type="search" placeholder="Resource, word or type" value=${search.value}
          onInput=${(/** @type {Event} */ event) => {
            search.value = /** @type {HTMLInputElement} */ (event.currentTarget).value;
          }} />
      </label>
      ${Object.entries(KINDS).map(
        ([kind, word]) =>
          html`<button key=${kind} aria-pressed=${kinds.value.includes(kind)} onClick=${() => toggle(kind)}>${word}</button>`,
      )}
      <span class="muted" role="status">${fitting.length} of ${all.length}</span>
    </div>
    <p class="muted">Events of traversal ${number}, and all events since you opened this page. For earlier traversals, use Versions or Timeline.</p>
    <${ProblemBox} error=${history.failure.value} />
    <ol class="stack-list stack-events">
      ${fitting.slice(0, many.value).map((item) => html`<${Row} key=${item.id} event=${item} viewState=${viewState} show=${show} />`)}
    </ol>
    ${
      fitting.length > many.value &&
      html`<button onClick=${() => {
        many.value += PAGE;
      }}>Show more</button>`
    }
  </section>`;
}

/** @param {{event: CloudEvent, viewState: ViewState, show: (view: string) => void}} props */
function Row({ event, viewState, show }) {
  const tone = toneOf(event);
  const open = () => {
    const node = viewState.model.value?.at(event.subject ?? "");
    show("graph");
    if (node) viewState.select(node.key);
  };
  const text = html`<${Breakable} text=${eventText(event)} />`;
  return html`<li>
    <${Badge} state=${tone === "other" ? "waiting" : tone} word=${TONE_LABELS[tone]} />
    ${event.subject ? html`<button class="plain stack-sentence breaks" onClick=${open}><span>${text}</span></button>` : html`<span class="stack-sentence breaks">${text}</span>`}
    <code class="muted breaks"><${Breakable} text=${event.type} /></code>
    <${Ago} at=${event.time} />
  </li>`;
}

/**
 * Fetched and live events without duplicates, newest first.
 * @param {CloudEvent[]} read in order @param {CloudEvent[]} came in order
 * @returns {CloudEvent[]}
 */
function newestFirst(read, came) {
  const seen = new Set(read.map((item) => item.id));
  return [...read, ...came.filter((item) => !seen.has(item.id))].reverse();
}

/**
 * @param {CloudEvent[]} events
 * @param {string[]} kinds second parts of event types; empty: all
 * @param {string} search search text; each word must match
 * @param {(event: CloudEvent) => string} words
 * @returns {CloudEvent[]}
 */
function matching(events, kinds, search, words) {
  const parts = search.toLowerCase().split(/\s+/).filter(Boolean);
  return events.filter((event) => {
    if (kinds.length > 0 && !kinds.includes(event.type.split(".")[1] ?? "")) return false;
    if (parts.length === 0) return true;
    const text = `${words(event)} ${event.type} ${event.subject ?? ""}`.toLowerCase();
    return parts.every((part) => text.includes(part));
  });
}
