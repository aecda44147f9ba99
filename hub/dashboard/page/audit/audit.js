/** The audit log of the project, newest first. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { currentPlace, href, setQuery } from "../app/route.js";
import { pointInWords } from "../inbox/hook_text.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Copy } from "../parts/copy.js";
import { EmptyState } from "../parts/empty_state.js";
import { coalesce } from "../parts/fetch.js";
import { Field } from "../parts/field.js";
import { useInteraction } from "../parts/interaction.js";
import { asProblem, FieldErrorHelp, ProblemBox } from "../parts/problem.js";
import { stableRows } from "../parts/stable_rows.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { badgeStateOf, entryData, entryDetails, entryKey, entryText, isOfStack } from "./entry.js";

/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {Entry & {id: string}} Row */

const PAGE = 50;
/** Event types after which the log may have new entries. */
const RELEVANT_EVENTS = /^headgate\.hook\./;
/** Number of hash digits shown. */
const HASH_DIGITS = 12;

/** @param {{project: string}} props */
export function Audit({ project }) {
  const { held, on } = useInteraction();
  const rows = useSignal(/** @type {Row[] | null} */ (null));
  const more = useSignal(0);
  const next = useSignal("");
  const failure = useSignal(/** @type {unknown} */ (null));
  const read = useRef(() => {});
  const { query } = currentPlace.value;
  const [by, stack, from] = ["by", "stack", "from"].map((name) => query.get(name) ?? "");
  useEffect(() => {
    const controller = new AbortController();
    let refresh = true;
    const fetched = coalesce(async () => {
      if (controller.signal.aborted) return;
      const params = new URLSearchParams({ limit: String(PAGE) });
      for (const [name, value] of Object.entries({ by, stack, marker: from }))
        if (value) params.set(name, value);
      try {
        const path = `/decisions?${params}`;
        const response = await call("GET", project, path, undefined, { signal: controller.signal });
        const fresh = response.decisions.map((/** @type {Entry} */ decision) => ({
          ...decision,
          id: entryKey(decision),
        }));
        const shown = stableRows(rows.peek() ?? [], fresh, held.peek() && !refresh);
        refresh = false;
        rows.value = shown.rows;
        more.value = shown.held;
        next.value = response.next ? String(response.next) : "";
        failure.value = null;
      } catch (error) {
        if (isAborted(error)) return;
        failure.value = error;
        if (refresh) rows.value = null;
      }
    });
    read.current = () => {
      refresh = true;
      fetched();
    };
    fetched();
    const stop = listen({
      event: (event) => {
        if (RELEVANT_EVENTS.test(event.type)) fetched();
      },
      resync: fetched,
    });
    return () => {
      controller.abort();
      stop();
    };
  }, [project, by, stack, from]);
  const result = rows.value;
  return html`<div class="page-head"><h1>Audit log</h1>
      <p class="muted">Decisions and breakpoint changes with their reasons. The hash of each entry covers the previous
        entry of its stack, so any change to the log is detectable.</p></div>
    <${Filters} by=${by ?? ""} stack=${stack ?? ""} failure=${failure.value} />
    ${more.value > 0 && html`<div role="status"><button onClick=${() => read.current()}>Show ${more.value} newer</button></div>`}
    ${
      result?.length === 0 &&
      (by || stack
        ? html`<p class="card muted">No entries match the filters.</p>`
        : html`<${EmptyState} title="No entries yet.">
            <p>
              The audit log records each decision about a hook and each change of a breakpoint: who, when, why,
              and what the approver saw. Each entry has the hash of the one before, so that a change is evident.
            </p>
          <//>`)
    }
    <ol class="audit" ...${on}>
      ${result?.map((item) => html`<${Line} key=${item.id} project=${project} entry=${item} />`)}
    </ol>
    ${
      (from || next.value) &&
      html`<nav class="row" aria-label="Audit log pages">
        ${from && html`<button onClick=${() => setQuery({ from: "" })}>Newest</button>`}
        ${next.value && html`<button onClick=${() => setQuery({ from: next.value })}>Older</button>`}
      </nav>`
    }`;
}

/** @param {{by: string, stack: string, failure: unknown}} props */
function Filters({ by, stack, failure }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  useEffect(() => {
    // Keep what the user types, unless a link or a button changed the filter.
    for (const [name, value] of Object.entries({ by, stack })) {
      const field = form.current?.elements.namedItem(name);
      if (field instanceof HTMLInputElement) field.value = value;
    }
  }, [by, stack]);
  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
    setQuery({ by: text("by"), stack: text("stack"), from: "" });
  }
  const problem = failure ? asProblem(failure) : null;
  // Only the stack can be not found.
  const at = problem?.status === 404 && stack ? "stack" : (problem?.place ?? "");
  const atField = ["by", "stack"].includes(at);
  const refusal = problem
    ? [problem.message.replace(/\.$/, ""), problem.remedy].filter(Boolean).join(". ")
    : "";
  return html`<search aria-label="Audit log">
    <form ref=${form} class="row audit-narrowing" onSubmit=${submit}>
      <${Field} label="User" error=${at === "by" ? refusal : ""}>
        ${(/** @type {object} */ needs) => html`<input type="search" name="by" autocomplete="off" ...${needs} />`}
      <//>
      <${Field} label="Stack" hint="Name or ID" error=${at === "stack" ? refusal : ""}>
        ${(/** @type {object} */ needs) => html`<input type="search" name="stack" autocomplete="off" ...${needs} />`}
      <//>
      <button>Apply filters</button>
      ${(by || stack) && html`<button type="button" class="plain" onClick=${() => setQuery({ by: "", stack: "", from: "" })}>Clear filters</button>`}
    </form>
    ${problem && (atField ? html`<${FieldErrorHelp} problem=${problem} />` : html`<${ProblemBox} error=${problem} />`)}
  </search>`;
}

/** @param {{project: string, entry: Row}} props */
function Line({ project, entry }) {
  const name = entry.stack_name;
  const extra = entryData(entry);
  return html`<li>
    <${Badge} state=${badgeStateOf(entry.kind)} word=${entry.kind} />
    <div class="audit-what">
      <p>
        ${!entry.kind.startsWith("expired-") && html`<strong class="breaks">${entry.by}</strong> `}
        ${entryText(entry)}${entryDetails(entry) && html` <span class="breaks">${entryDetails(entry)}</span>`}
        ${entry.path && html`: <code class="breaks">${entry.path}</code>`}
        ${entry.point && html` ${pointInWords(entry.point)}`}
        ${name && html`, in <a class="breaks" href=${href(project, "stack", name, entry.stack_id)}>${name}</a>`}
        ${!name && isOfStack(entry) && html`, in a purged stack`}
        ${entry.hook_id && html` · <a href=${href(project, "inbox", entry.hook_id)}>Hook details</a>`}
      </p>
      ${entry.reason && html`<p class="breaks audit-reason">${entry.reason}</p>`}
      ${extra && html`<details><summary>Answer data</summary><pre tabindex="0">${extra}</pre></details>`}
      <p class="muted">
        ${entry.channel && html`via ${entry.channel}`}${entry.address && html` from <span class="breaks">${entry.address}</span>`}
      </p>
    </div>
    <div class="audit-when">
      <${Ago} at=${entry.at} />
      <span class="muted unbroken">${entry.number}${" "}
        <code title=${entry.hash}>${entry.hash.slice(0, HASH_DIGITS)}…</code>
        <${Copy} text=${entry.hash} what=${`the hash of entry ${entry.number}`} /></span>
    </div>
  </li>`;
}
