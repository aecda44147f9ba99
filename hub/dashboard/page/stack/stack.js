/** The page of a stack: live graph, debugger and tabs. */

import { may } from "../api/session.js";
import { currentPlace, setQuery } from "../app/route.js";
import { Graph } from "../graph/graph.js";
import { Loading } from "../parts/loading.js";
import { narrow } from "../parts/narrow.js";
import { ProblemBox } from "../parts/problem.js";
import { selectedTraversal, Timeline } from "../timeline/timeline.js";
import { html, useEffect, useMemo } from "../vendor/preact.js";
import { DebuggerBar } from "./debugger_bar.js";
import { Debugging } from "./debugging.js";
import { StackDependencies } from "./dependencies.js";
import { Events } from "./events.js";
import { DeletedNotice, Head } from "./head.js";
import { Panel } from "./panel.js";
import { Resources } from "./resources.js";
import { Snapshots } from "./snapshots.js";
import { Outputs } from "./values.js";
import { Versions } from "./versions.js";
import { ViewState } from "./view_state.js";
import { WatchedStack } from "./watch.js";

/** @type {readonly [string, string][]} */
const VIEWS = [
  ["graph", "Graph"],
  ["resources", "Resources"],
  ["outputs", "Outputs"],
  ["dependencies", "Dependencies"],
  ["events", "Events"],
  ["versions", "Versions"],
  ["snapshots", "Snapshots"],
];

/** @param {{project: string, rest: string[]}} props rest: the stack's name and id */
export function StackPage({ project, rest }) {
  const [name = "", id = ""] = rest;
  const viewState = useMemo(() => new ViewState(new WatchedStack(project, name, id)), []);
  const debugging = useMemo(() => new Debugging(viewState), []);
  const { watched } = viewState;
  useEffect(() => {
    watched.open();
    return () => watched.close();
  }, []);
  useEffect(() => viewState.selectFromAddress(), [watched.model.value]);
  const status = watched.stack.value?.stack_status ?? "";
  useEffect(() => {
    if (status) document.title = `${name}: ${status} · ${project} · Headgate`;
  }, [status]);
  const requested = currentPlace.value.query.get("view") ?? "graph";
  const view = VIEWS.some(([name]) => name === requested) ? requested : "graph";
  /** @param {string} to */
  const show = (to) => setQuery({ view: to === "graph" ? "" : to });
  const tabs =
    (watched.stack.value || watched.model.value) && html`<${Tabs} view=${view} show=${show} />`;
  return html`<${Head} watched=${watched} views=${narrow.value && tabs} />
    <${DeletedNotice} watched=${watched} />
    ${!watched.gone.value && html`<${ProblemBox} error=${watched.failure.value} />`}
    ${!narrow.value && tabs}
    ${view === "graph" && html`<${GraphView} viewState=${viewState} debugging=${debugging} />`}
    ${view === "resources" && html`<${Resources} viewState=${viewState} show=${show} />`}
    ${view === "outputs" && html`<${Outputs} watched=${watched} />`}
    ${view === "dependencies" && html`<${StackDependencies} watched=${watched} />`}
    ${view === "events" && html`<${Events} viewState=${viewState} show=${show} />`}
    ${view === "snapshots" && html`<${Snapshots} watched=${watched} />`}
    ${
      view === "versions" &&
      html`<${Versions} watched=${watched} showTraversal=${(/** @type {number} */ number) =>
        setQuery({ view: "", traversal: String(number) })} />`
    }`;
}

/** @param {{view: string, show: (to: string) => void}} props */
function Tabs({ view, show }) {
  if (narrow.value) {
    return html`<label class="tabs-select"><span class="only-read">View of the stack</span>
      <select value=${view} onChange=${(/** @type {Event} */ event) =>
        show(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
        ${VIEWS.map(([name, title]) => html`<option key=${name} value=${name}>${title}</option>`)}
      </select>
    </label>`;
  }
  return html`<nav class="tabs" aria-label="Views of the stack">
    ${VIEWS.map(
      ([
        name,
        title,
      ]) => html`<button key=${name} class="plain" aria-current=${view === name ? "page" : undefined}
        onClick=${() => show(name)}>${title}</button>`,
    )}
  </nav>`;
}

/** @param {{viewState: import("./view_state.js").ViewState, debugging: Debugging}} props */
function GraphView({ viewState, debugging }) {
  const { watched } = viewState;
  const model = viewState.model.value;
  const deleted = watched.gone.value !== null;
  if (!model) {
    return watched.failure.value || deleted ? null : html`<${Loading} what="the graph" />`;
  }
  const past = viewState.past.value !== null;
  return html`${
    selectedTraversal() > 0
      ? html`<${Timeline} viewState=${viewState} />`
      : html`<${DebuggerBar} debugging=${debugging} />`
  }
    <div class="stack-graph" data-gone=${deleted} data-past=${past} data-panel=${viewState.subject.value !== null}>
      <div class="stack-drawing">
        <${Graph} key=${past ? "past" : "live"} model=${model} selected=${viewState.selected}
          label=${past ? `Past graph of ${watched.name}` : `Graph of ${watched.name}`}
          drift=${viewState.drift.value} arrangement=${viewState.arrangement}
          canEdit=${may("write") && !deleted} readonly=${past || deleted}
          onSelect=${(/** @type {import("../graph/types.js").GraphNode | null} */ node) => viewState.select(node?.key ?? null)}
          onBreakpoint=${(
            /** @type {string} */ _path,
            /** @type {"pre" | "post"} */ side,
            /** @type {boolean} */ on,
            /** @type {import("../graph/types.js").GraphNode} */ node,
          ) => debugging.toggle(node, side, on)} />
      </div>
      <${Panel} viewState=${viewState} debugging=${debugging} />
    </div>`;
}
