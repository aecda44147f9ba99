/** The Inbox page: the waiting hooks of the project, by deadline, with their answer forms. */

import { session } from "../api/session.js";
import { DesktopButton } from "../app/desktop.js";
import { useKeys } from "../app/keys.js";
import { currentPlace, href, setQuery } from "../app/route.js";
import { EmptyState } from "../parts/empty_state.js";
import { Icon } from "../parts/icon.js";
import { Loading } from "../parts/loading.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { BulkActions, SelectHook } from "./bulk.js";
import { Card } from "./card.js";
import { DryRunHooks } from "./dry_run.js";
import { byStack, filterOptions, isFiltered, parseFilter } from "./filters.js";
import { HookPage } from "./hook_page.js";
import { isForUser } from "./rights.js";
import { openSignal, useBusy, useGrouped, useRows } from "./rows.js";
import { cachedHook, failure, more, tryAgain, waiting } from "./waiting.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./filters.js").Filter} Filter */
/** @typedef {{currentTarget: HTMLInputElement}} Changed */

/** Rows shown initially and added by "Show more". */
const PAGE = 100;

/** @param {{project: string, rest: string[]}} props */
export function Inbox({ project, rest }) {
  const [id] = rest;
  return id
    ? html`<${HookPage} project=${project} id=${id} />`
    : html`<${HookList} project=${project} />`;
}

/** @param {{project: string}} props */
function HookList({ project }) {
  const { query } = currentPlace.value;
  const filter = parseFilter(query);
  const grouped = useGrouped(query.get("group") ?? "");
  const { place, busy } = useBusy();
  const list = useRows(filter, grouped, busy);
  useRowKeys();
  const all = waiting.value;
  const hooks = list.rows.map(cachedHook).filter((item) => item !== undefined);
  return html`<div class="page-head inbox-head">
      <h1>Inbox</h1>
      <${WaitingCount} hooks=${all} />
    <div class="acts">
      <${BulkActions} project=${project} hooks=${hooks} />
      ${list.held > 0 && html`<button onClick=${list.show}>Show ${list.held} new</button>`}
      ${hooks.some((hook) => hook.state !== "waiting") && html`<button onClick=${list.clear}>Clear completed</button>`}
      ${more.value && html`<span class="muted">Showing only the oldest hooks.</span>`}
      <${DesktopButton} />
    </div>
    </div>
    <${Filters} filter=${filter} grouped=${grouped} hooks=${all ?? []} />
    <${ProblemBox} error=${failure.value} />
    ${failure.value && html`<div><button onClick=${() => tryAgain()}>Try again</button></div>`}
    <div class="inbox" ref=${place}>
      ${all === null && !failure.value && html`<${Loading} what="the inbox" />`}
      ${all !== null && hooks.length === 0 && html`<${EmptyInbox} project=${project} filter=${filter} />`}
      ${
        grouped
          ? html`<${Groups} project=${project} hooks=${hooks} />`
          : html`<${List} project=${project} hooks=${hooks} level=${2} />`
      }
    </div>
    <${DryRunHooks} project=${project} />`;
}

/** The number of waiting hooks, announced when it changes. @param {{hooks: Hook[] | null}} props */
function WaitingCount({ hooks }) {
  if (hooks === null) return null;
  const answerable = hooks.filter((hook) => isForUser(hook, session.value)).length;
  const text = `${hooks.length} waiting`;
  return html`<p class="muted" role="status">${text}, ${answerable} for you</p>`;
}

/** @param {{project: string, filter: Filter}} props */
function EmptyInbox({ project, filter }) {
  if (!isFiltered(filter))
    return html`<${EmptyState} title="No hooks are waiting for approval.">
      <p>
        A hook pauses a change at a point of a resource until someone approves it. Set one in the environment
        of a stack; it then appears here with the planned changes:
      </p>
      <pre class="code">hooks:
  - at: database
    on: pre-create</pre>
      <p><a href=${href(project, "new")}>Create a stack</a>, or try it with <code>make demo</code>.</p>
    <//>`;
  const clear = () => setQuery({ mine: "", stack: "", point: "", search: "" });
  return html`<p class="inbox-empty">No waiting hooks match the filters. <button onClick=${clear}>Clear filters</button></p>`;
}

/** @param {{filter: Filter, grouped: boolean, hooks: Hook[]}} props */
function Filters({ filter, grouped, hooks }) {
  const { stacks, points } = filterOptions(hooks);
  /** @param {string} name */
  const set = (name) => (/** @type {Changed} */ event) =>
    setQuery({ [name]: event.currentTarget.value });
  return html`<search class="inbox-filters">
    <label class="row">
      <input type="checkbox" checked=${filter.mine}
        onChange=${(/** @type {Changed} */ event) => setQuery({ mine: event.currentTarget.checked ? "true" : "" })} />
      For me
    </label>
    <${Choice} label="Stack" value=${filter.stack} from=${stacks} onChange=${set("stack")} />
    <${Choice} label="Point" value=${filter.point} from=${points} onChange=${set("point")} />
    <label class="row grows">
      <span class="only-read">Search</span>
      <${Icon} name="search" />
      <input type="search" id="inbox-search" placeholder="Path, type or stack" value=${filter.text} onInput=${set("search")} />
    </label>
    <label class="row">
      <input type="checkbox" checked=${grouped}
        onChange=${(/** @type {Changed} */ event) => setQuery({ group: event.currentTarget.checked ? "stack" : "none" })} />
      Group by stack
    </label>
  </search>`;
}

/** @param {{label: string, value: string, from: string[], onChange: (event: Changed) => void}} props */
function Choice({ label, value, from, onChange }) {
  const options = value && !from.includes(value) ? [value, ...from] : from;
  return html`<label class="row">
    ${label}
    <select value=${value} onChange=${onChange}>
      <option value="">any</option>
      ${options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}
    </select>
  </label>`;
}

/**
 * level: heading level of the rows.
 * @param {{project: string, hooks: Hook[], level: number}} props
 */
function List({ project, hooks, level }) {
  const many = useSignal(PAGE);
  return html`${hooks.slice(0, many.value).map((hook) => html`<${Row} key=${hook.id} project=${project} hook=${hook} level=${level} />`)}
    ${
      hooks.length > many.value &&
      html`<button onClick=${() => {
        many.value += PAGE;
      }}>Show more (${hooks.length - many.value} remaining)</button>`
    }`;
}

/** @param {{project: string, hook: Hook, level: number}} props */
function Row({ project, hook, level }) {
  const open = openSignal(hook.id);
  const toggle = () => {
    open.value = !open.value;
  };
  return html`<${Card} project=${project} hook=${hook} open=${open.value} onToggle=${toggle} level=${level}
    select=${html`<${SelectHook} hook=${hook} />`} />`;
}

/** Hooks grouped by stack. @param {{project: string, hooks: Hook[]}} props */
function Groups({ project, hooks }) {
  return byStack(hooks).map(
    (group) =>
      html`<${Group} key=${group.id} project=${project} name=${group.name} hooks=${group.hooks} id=${group.id} />`,
  );
}

/** @param {{project: string, id: string, name: string, hooks: Hook[]}} props */
function Group({ project, id, name, hooks }) {
  const open = openSignal(id);
  const waits = hooks.filter((hook) => hook.state === "waiting").length;
  return html`<section class="inbox-group" aria-label=${name}>
    <h2>
      <button type="button" class="plain hook-opens" aria-expanded=${open.value} onClick=${() => {
        open.value = !open.value;
      }}>
        <code class="breaks">${name}</code> <span class="muted">${waits} waiting</span>
      </button>
      <a href=${href(project, "stack", name, id)}>Open stack</a>
    </h2>
    ${open.value && html`<${List} project=${project} hooks=${hooks} level=${3} />`}
  </section>`;
}

/** Registers j and k for moving between rows and / for the search. */
function useRowKeys() {
  useKeys([
    { key: "j", description: "next waiting hook", run: () => focusRow(1) },
    { key: "k", description: "previous waiting hook", run: () => focusRow(-1) },
    {
      key: "/",
      description: "search",
      run: () => document.getElementById("inbox-search")?.focus(),
    },
  ]);
}

/** @param {number} by */
function focusRow(by) {
  /** @type {HTMLElement[]} */
  const heads = [...document.querySelectorAll(".inbox .hook-opens")].map(
    (item) => /** @type {HTMLElement} */ (item),
  );
  const inside = document.activeElement?.closest(".hook, .inbox-group h2");
  const at = heads.findIndex((head) => inside?.contains(head));
  const next = at < 0 ? (by > 0 ? 0 : heads.length - 1) : at + by;
  heads[Math.min(Math.max(next, 0), heads.length - 1)]?.focus();
}
