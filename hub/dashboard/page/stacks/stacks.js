/** The stacks of a project: what each does, how far it is, and for whom it waits. */

import { may } from "../api/session.js";
import { useKeys } from "../app/keys.js";
import { ask, go, here, href } from "../app/route.js";
import { useHeld } from "../parts/held.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../vendor/preact.js";
import { ActDialog } from "./act.js";
import { asked as askedOf } from "./asked.js";
import { Filters } from "./filters.js";
import { stackList } from "./list.js";
import { Row } from "./row.js";

/** @typedef {import("./shapes.js").Line} Line */
/** @typedef {import("./list.js").StackList} StackList */
/** @typedef {import("./asked.js").Asked} Asked */

/** @param {{project: string}} props */
export function Stacks({ project }) {
  const { held, on } = useHeld();
  const list = useMemo(() => stackList(project, held), [project]);
  const query = here.value.query.toString();
  const asked = useMemo(() => askedOf(new URLSearchParams(query)), [query]);
  const acting = useSignal(/** @type {Line | null} */ (null));
  useEffect(() => list.end, [list]);
  useEffect(() => {
    list.load(asked);
  }, [list, asked]);
  useListKeys(project);
  const shown = list.shown.value;
  return html`<div class="page-head">
      <h1>Stacks</h1>
      <${News} list=${list} />
      ${may("write") && html`<div class="acts"><a class="button first" href=${href(project, "new")}>New stack</a></div>`}
    </div>
    <${Filters} asked=${asked} counts=${list.counts.value} />
    <${ProblemBox} error=${list.wrong.value} />
    <div aria-busy=${list.busy.value ? "true" : "false"} ...${on}>
      ${shown && shown.rows.length > 0 && html`<${Table} project=${project} list=${list} asked=${asked} act=${(/** @type {Line} */ line) => (acting.value = line)} />`}
      ${shown && shown.rows.length === 0 && html`<${None} project=${project} query=${query} />`}
    </div>
    <${Turn} list=${list} asked=${asked} />
    ${
      acting.value &&
      html`<${ActDialog} project=${project} line=${acting.value} onClose=${() => {
        acting.value = null;
      }} />`
    }`;
}

/** @param {{project: string, list: StackList, asked: Asked, act: (line: Line) => void}} props */
function Table({ project, list, asked, act }) {
  const shown = list.shown.value;
  return html`<table class="stacks-table" role="table" aria-label="Stacks">
    <thead role="rowgroup">
      <tr role="row">
        ${["Stack", "State", "Progress", "Waits for", "Asked for by"].map(
          (one) => html`<th key=${one} role="columnheader" scope="col">${one}</th>`,
        )}
        <td role="cell"></td>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${shown?.rows.map(
        (
          line,
        ) => html`<${Row} key=${line.id} project=${project} line=${line} gone=${shown.gone.has(line.id)}
          asked=${asked} act=${act} />`,
      )}
    </tbody>
  </table>`;
}

/** What is to be seen once the list is read again, or moved. @param {{list: StackList}} props */
function News({ list }) {
  const shown = list.shown.value;
  const many = shown?.added.length ?? 0;
  const gone = shown?.gone.size ?? 0;
  return html`<div class="row" role="status">
    ${many > 0 && html`<button onClick=${list.join}>Show ${many} new ${many === 1 ? "stack" : "stacks"}</button>`}
    ${
      gone > 0 &&
      html`<span>${gone} ${gone === 1 ? "stack that is shown was deleted" : "stacks that are shown were deleted"}.</span>
        <button class="plain" onClick=${list.again}>Read the list again</button>`
    }
  </div>`;
}

/** @param {{project: string, query: string}} props */
function None({ project, query }) {
  if (query)
    return html`<p class="card muted">No stack is like that. Ask for less, or show all.</p>`;
  return html`<p class="card">
    There are no stacks in ${project} yet.${" "}
    ${may("write") && html`<a href=${href(project, "new")}>Make the first one</a>, or${" "}`}
    <code>headgate stack create NAME -t template.yaml</code>
  </p>`;
}

/** Pages; the server says where the next one begins. @param {{list: StackList, asked: Asked}} props */
function Turn({ list, asked }) {
  const before = useRef(/** @type {string[]} */ ([]));
  const next = list.next.value;
  if (!next && !asked.from) return null;
  const forth = () => {
    before.current.push(asked.from);
    ask({ from: next });
    scrollTo(0, 0);
  };
  const back = () => {
    ask({ from: before.current.pop() ?? "" });
    scrollTo(0, 0);
  };
  return html`<nav class="row" aria-label="Pages of the list">
    ${asked.from && html`<button onClick=${back}>${before.current.length > 0 ? "Newer" : "Newest"}</button>`}
    ${next && html`<button onClick=${forth}>Older</button>`}
  </nav>`;
}

/** @param {string} project */
function useListKeys(project) {
  /** @param {number} by */
  const step = (by) => {
    const links = [...document.querySelectorAll(".stacks-name")];
    const at = links.findIndex((one) => one.closest("tr")?.contains(document.activeElement));
    const to = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (to instanceof HTMLElement) to.focus();
  };
  useKeys([
    {
      key: "/",
      does: "search",
      run: () =>
        /** @type {HTMLElement | null} */ (document.querySelector("input[name=search]"))?.focus(),
    },
    { key: "j", does: "the next stack", run: () => step(1) },
    { key: "k", does: "the stack before", run: () => step(-1) },
    ...(may("write")
      ? [{ key: "n", does: "a new stack", run: () => go(href(project, "new")) }]
      : []),
  ]);
}
