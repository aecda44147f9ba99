/** Who decided what in the project, through which door, from where and why; newest first. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { ask, here, href } from "../app/route.js";
import { pointInWords } from "../inbox/words.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Copy } from "../parts/copy.js";
import { Field } from "../parts/field.js";
import { useHeld } from "../parts/held.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { repeated } from "../parts/repeated.js";
import { steadyRows } from "../parts/steady.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { about, drawn, keyOf, sent, words } from "./entry.js";

/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {Entry & {id: string}} Row */

const PAGE = 50;
/** What is written down in the trail. */
const DECIDES = /^headgate\.hook\./;
/** Digits of a hash that are shown. */
const SHORT = 12;

/** @param {{project: string}} props */
export function Audit({ project }) {
  const { held, on } = useHeld();
  const rows = useSignal(/** @type {Row[] | null} */ (null));
  const more = useSignal(0);
  const next = useSignal("");
  const wrong = useSignal(/** @type {unknown} */ (null));
  const read = useRef(() => {});
  const { query } = here.value;
  const [by, stack, from] = ["by", "stack", "from"].map((name) => query.get(name) ?? "");
  useEffect(() => {
    const given = new AbortController();
    let anew = true;
    const fetched = repeated(async () => {
      if (given.signal.aborted) return;
      const asked = new URLSearchParams({ limit: String(PAGE) });
      for (const [name, value] of Object.entries({ by, stack, marker: from }))
        if (value) asked.set(name, value);
      try {
        const path = `/decisions?${asked}`;
        const said = await call("GET", project, path, undefined, { signal: given.signal });
        const fresh = said.decisions.map((/** @type {Entry} */ one) => ({
          ...one,
          id: keyOf(one),
        }));
        const shown = steadyRows(rows.peek() ?? [], fresh, held.peek() && !anew);
        anew = false;
        rows.value = shown.rows;
        more.value = shown.held;
        next.value = said.next ? String(said.next) : "";
        wrong.value = null;
      } catch (error) {
        if (isAborted(error)) return;
        wrong.value = error;
        if (anew) rows.value = null;
      }
    });
    read.current = () => {
      anew = true;
      fetched();
    };
    fetched();
    const stop = listen({
      event: (event) => {
        if (DECIDES.test(event.type)) fetched();
      },
      resync: fetched,
    });
    return () => {
      given.abort();
      stop();
    };
  }, [project, by, stack, from]);
  const found = rows.value;
  return html`<div class="page-head"><h1>Audit</h1>
      <p class="muted">Who decided what, and why. Each entry's hash covers the one before it in its stack:
        nobody changes the past unseen.</p></div>
    <${Narrowing} by=${by ?? ""} stack=${stack ?? ""} wrong=${wrong.value} />
    ${more.value > 0 && html`<div role="status"><button onClick=${() => read.current()}>Show ${more.value} newer</button></div>`}
    ${found?.length === 0 && html`<p class="card muted">${by || stack ? "Nothing is like that." : "Nobody has decided anything yet."}</p>`}
    <ol class="audit" ...${on}>
      ${found?.map((one) => html`<${Line} key=${one.id} project=${project} entry=${one} />`)}
    </ol>
    ${
      (from || next.value) &&
      html`<nav class="row" aria-label="Pages of the trail">
        ${from && html`<button onClick=${() => ask({ from: "" })}>Newest</button>`}
        ${next.value && html`<button onClick=${() => ask({ from: next.value })}>Older</button>`}
      </nav>`
    }`;
}

/** @param {{by: string, stack: string, wrong: unknown}} props */
function Narrowing({ by, stack, wrong }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  useEffect(() => {
    // What is typed is not touched, but by a link or a button that asks for something else.
    for (const [name, value] of Object.entries({ by, stack })) {
      const field = form.current?.elements.namedItem(name);
      if (field instanceof HTMLInputElement) field.value = value;
    }
  }, [by, stack]);
  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    const said = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const text = (/** @type {string} */ name) => String(said.get(name) ?? "").trim();
    ask({ by: text("by"), stack: text("stack"), from: "" });
  }
  const problem = wrong ? asProblem(wrong) : null;
  // What is not found can be nothing but the stack.
  const at = problem?.status === 404 && stack ? "stack" : (problem?.place ?? "");
  const refusal = problem
    ? [problem.message.replace(/\.$/, ""), problem.remedy].filter(Boolean).join(". ")
    : "";
  return html`<search aria-label="The trail">
    <form ref=${form} class="row audit-narrowing" onSubmit=${submit}>
      <${Field} label="Who" wrong=${at === "by" ? refusal : ""}>
        ${(/** @type {object} */ needs) => html`<input type="search" name="by" autocomplete="off" ...${needs} />`}
      <//>
      <${Field} label="Stack" hint="its name or id" wrong=${at === "stack" ? refusal : ""}>
        ${(/** @type {object} */ needs) => html`<input type="search" name="stack" autocomplete="off" ...${needs} />`}
      <//>
      <button>Show these</button>
      ${(by || stack) && html`<button type="button" class="plain" onClick=${() => ask({ by: "", stack: "", from: "" })}>Show all</button>`}
    </form>
    ${problem && !["by", "stack"].includes(at) && html`<${ProblemBox} error=${problem} />`}
  </search>`;
}

/** @param {{project: string, entry: Row}} props */
function Line({ project, entry }) {
  const name = entry.stack_name;
  const extra = sent(entry);
  return html`<li>
    <${Badge} state=${drawn(entry.kind)} word=${entry.kind} />
    <div class="audit-what">
      <p>
        ${!entry.kind.startsWith("expired-") && html`<strong class="breaks">${entry.by}</strong> `}
        ${words(entry)}${about(entry) && html` <span class="breaks">${about(entry)}</span>`}
        ${entry.path && html`: <code class="breaks">${entry.path}</code>`}
        ${entry.point && html` ${pointInWords(entry.point)}`}
        ${name && html`, in <a class="breaks" href=${href(project, "stack", name, entry.stack_id)}>${name}</a>`}
        ${!name && html`, in a stack that was purged`}
        ${entry.hook_id && html`, <a href=${href(project, "inbox", entry.hook_id)}>the hook</a>`}
      </p>
      ${entry.reason && html`<p class="breaks audit-reason">${entry.reason}</p>`}
      ${extra && html`<details><summary>What was sent with it</summary><pre>${extra}</pre></details>`}
      <p class="muted">
        ${entry.door && html`through ${entry.door}`}${entry.address && html` from <span class="breaks">${entry.address}</span>`}
      </p>
    </div>
    <div class="audit-when">
      <${Ago} at=${entry.at} />
      <span class="muted unbroken">${entry.number}${" "}
        <code title=${entry.hash}>${entry.hash.slice(0, SHORT)}…</code>
        <${Copy} text=${entry.hash} what=${`the hash of entry ${entry.number}`} /></span>
    </div>
  </li>`;
}
