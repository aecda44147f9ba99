/** The Stacks page: status, progress and waiting hooks of each stack. */

import { may } from "../api/session.js";
import { useKeys } from "../app/keys.js";
import { currentPlace, href, navigate, setQuery } from "../app/route.js";
import { EmptyState } from "../parts/empty_state.js";
import { useInteraction } from "../parts/interaction.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../vendor/preact.js";
import { ActionDialog } from "./action_dialog.js";
import { Filters } from "./filters.js";
import { stackList } from "./list.js";
import { parseQuery } from "./query.js";
import { Row } from "./row.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./list.js").StackList} StackList */
/** @typedef {import("./query.js").StackQuery} StackQuery */

/** @param {{project: string}} props */
export function Stacks({ project }) {
  const { held, on } = useInteraction();
  const list = useMemo(() => stackList(project, held), [project]);
  const search = currentPlace.value.query.toString();
  const query = useMemo(() => parseQuery(new URLSearchParams(search)), [search]);
  const acting = useSignal(/** @type {Line | null} */ (null));
  useEffect(() => list.end, [list]);
  useEffect(() => {
    list.load(query);
  }, [list, query]);
  useListKeys(project);
  const shown = list.shown.value;
  return html`<div class="page-head">
      <h1>Stacks</h1>
      <${ListChanges} list=${list} />
      ${may("write") && html`<div class="acts"><a class="button first" href=${href(project, "new")}>New stack</a></div>`}
    </div>
    <${Filters} query=${query} counts=${list.counts.value} />
    <${ProblemBox} error=${list.failure.value} />
    <div aria-busy=${list.busy.value ? "true" : "false"} ...${on}>
      ${shown && shown.rows.length > 0 && html`<${Table} project=${project} list=${list} query=${query} act=${(/** @type {Line} */ line) => (acting.value = line)} />`}
      ${shown && shown.rows.length === 0 && html`<${EmptyList} project=${project} query=${search} />`}
    </div>
    <${Paging} list=${list} query=${query} />
    ${
      acting.value &&
      html`<${ActionDialog} project=${project} line=${acting.value} onClose=${() => {
        acting.value = null;
      }} />`
    }`;
}

/** @param {{project: string, list: StackList, query: StackQuery, act: (line: Line) => void}} props */
function Table({ project, list, query, act }) {
  const shown = list.shown.value;
  return html`<table class="stacks-table" role="table" aria-label="Stacks">
    <thead role="rowgroup">
      <tr role="row">
        ${["Stack", "Status", "Progress", "Hooks", "Requested by"].map(
          (item) => html`<th key=${item} role="columnheader" scope="col">${item}</th>`,
        )}
        <td role="cell"></td>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${shown?.rows.map(
        (
          line,
        ) => html`<${Row} key=${line.id} project=${project} line=${line} deleted=${shown.deleted.has(line.id)}
          query=${query} act=${act} />`,
      )}
    </tbody>
  </table>`;
}

/** New and deleted stacks that the list does not show yet. @param {{list: StackList}} props */
function ListChanges({ list }) {
  const shown = list.shown.value;
  const many = shown?.added.length ?? 0;
  const deleted = shown?.deleted.size ?? 0;
  return html`<div class="row" role="status">
    ${many > 0 && html`<button onClick=${list.showAdded}>Show ${many} new ${many === 1 ? "stack" : "stacks"}</button>`}
    ${
      deleted > 0 &&
      html`<span>${deleted} ${deleted === 1 ? "stack in this list was deleted" : "stacks in this list were deleted"}.</span>
        <button class="plain" onClick=${list.again}>Refresh list</button>`
    }
  </div>`;
}

/** A template that works on every server. */
const EXAMPLE = `heat_template_version: 2018-08-31
resources:
  word:
    type: OS::Heat::RandomString`;

/** @param {{project: string, query: string}} props */
function EmptyList({ project, query }) {
  if (query) return html`<p class="card muted">No stacks match the filters.</p>`;
  const option = project === "default" ? "" : ` --project ${project}`;
  return html`<${EmptyState} title=${`No stacks in ${project} yet.`}>
    <p>
      A stack is a set of resources that are created, updated and deleted together, in the order of their
      dependencies. Its template describes them:
    </p>
    <pre class="code">${EXAMPLE}</pre>
    ${
      may("write") &&
      html`<p><a href=${href(project, "new")}>Create the first stack</a>, or save the template and run${" "}
        <code class="breaks">headgate stack create first -t template.yaml${option}</code>.</p>`
    }
  <//>`;
}

/** Paging by the server's markers. @param {{list: StackList, query: StackQuery}} props */
function Paging({ list, query }) {
  const before = useRef(/** @type {string[]} */ ([]));
  const next = list.next.value;
  if (!next && !query.from) return null;
  const showOlder = () => {
    before.current.push(query.from);
    setQuery({ from: next });
    scrollTo(0, 0);
  };
  const showNewer = () => {
    setQuery({ from: before.current.pop() ?? "" });
    scrollTo(0, 0);
  };
  return html`<nav class="row" aria-label="Stack list pages">
    ${query.from && html`<button onClick=${showNewer}>${before.current.length > 0 ? "Newer" : "Newest"}</button>`}
    ${next && html`<button onClick=${showOlder}>Older</button>`}
  </nav>`;
}

/** @param {string} project */
function useListKeys(project) {
  /** @param {number} by */
  const step = (by) => {
    const links = [...document.querySelectorAll(".stacks-name")];
    const at = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
    const target = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (target instanceof HTMLElement) target.focus();
  };
  useKeys([
    {
      key: "/",
      description: "search",
      run: () =>
        /** @type {HTMLElement | null} */ (document.querySelector("input[name=search]"))?.focus(),
    },
    { key: "j", description: "next stack", run: () => step(1) },
    { key: "k", description: "previous stack", run: () => step(-1) },
    ...(may("write")
      ? [{ key: "n", description: "new stack", run: () => navigate(href(project, "new")) }]
      : []),
  ]);
}
