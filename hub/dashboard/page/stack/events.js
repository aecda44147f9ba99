/** All that happened, newest first; and as it happens. */

import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { History } from "../timeline/history.js";
import { html, useEffect, useMemo, useSignal } from "../vendor/preact.js";
import { matching, newestFirst } from "./filtered.js";
import { inWords, toneOf } from "./words.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("./state.js").Looking} Looking */

const PAGE = 200;
/** What can be asked for, by the second word of an event's type. */
const KINDS = { stack: "stacks", resource: "resources", hook: "hooks", delivery: "deliveries" };

/** @param {{looking: Looking, show: (view: string) => void}} props */
export function Events({ looking, show }) {
  const { watched } = looking;
  const number = watched.traversal.value?.number ?? 0;
  const history = useMemo(() => new History(watched, number), [watched, number]);
  const kinds = useSignal(/** @type {string[]} */ ([]));
  const asked = useSignal("");
  const many = useSignal(PAGE);
  useEffect(() => {
    if (number > 0) history.read();
    return () => history.close();
  }, [history]);
  const all = newestFirst(history.events.value, watched.events.value);
  const fitting = matching(all, kinds.value, asked.value, inWords);
  /** @param {string} kind */
  const toggle = (kind) => {
    kinds.value = kinds.value.includes(kind)
      ? kinds.value.filter((one) => one !== kind)
      : [...kinds.value, kind];
  };
  return html`<section class="column" aria-label="Events">
    <div class="row stack-filter">
      <label class="row stack-search"><${Icon} name="search" label="Search" />
        <input type="search" placeholder="resource, word or type" value=${asked.value}
          onInput=${(/** @type {Event} */ event) => {
            asked.value = /** @type {HTMLInputElement} */ (event.currentTarget).value;
          }} />
      </label>
      ${Object.entries(KINDS).map(
        ([kind, word]) =>
          html`<button key=${kind} aria-pressed=${kinds.value.includes(kind)} onClick=${() => toggle(kind)}>${word}</button>`,
      )}
      <span class="muted" role="status">${fitting.length} of ${all.length}</span>
    </div>
    <p class="muted">Of traversal ${number}, and all since this page was opened. Earlier ones: Versions, Timeline.</p>
    <${ProblemBox} error=${history.wrong.value} />
    <ol class="stack-list stack-events">
      ${fitting.slice(0, many.value).map((one) => html`<${Row} key=${one.id} event=${one} looking=${looking} show=${show} />`)}
    </ol>
    ${
      fitting.length > many.value &&
      html`<button onClick=${() => {
        many.value += PAGE;
      }}>Show more</button>`
    }
  </section>`;
}

/** @type {Record<string, string>} */
const WORDS = {
  gate: "gate",
  failed: "failed",
  stopped: "stopped",
  done: "done",
  running: "began",
  other: "told",
};

/** @param {{event: CloudEvent, looking: Looking, show: (view: string) => void}} props */
function Row({ event, looking, show }) {
  const tone = toneOf(event);
  const open = () => {
    const node = looking.model.value?.at(event.subject ?? "");
    show("graph");
    if (node) looking.select(node.key);
  };
  const said = inWords(event);
  return html`<li>
    <${Badge} state=${tone === "other" ? "waiting" : tone} word=${WORDS[tone]} />
    ${event.subject ? html`<button class="plain stack-sentence breaks" onClick=${open}>${said}</button>` : html`<span class="stack-sentence breaks">${said}</span>`}
    <code class="muted breaks">${event.type}</code>
    <${Ago} at=${event.time} />
  </li>`;
}
