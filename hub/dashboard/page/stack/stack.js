/** One stack: its graph, live, and all there is to know and to do. */

import { may } from "../api/session.js";
import { ask, here } from "../app/route.js";
import { Graph } from "../graph/graph.js";
import { ProblemBox } from "../parts/problem.js";
import { Timeline, traversalAsked } from "../timeline/timeline.js";
import { html, useEffect, useMemo } from "../vendor/preact.js";
import { Bar } from "./bar.js";
import { Debugging } from "./debugging.js";
import { Events } from "./events.js";
import { GoneBox } from "./gone.js";
import { Head } from "./head.js";
import { Outputs } from "./outputs.js";
import { Panel } from "./panel.js";
import { Resources } from "./resources.js";
import { Snapshots } from "./snapshots.js";
import { Looking } from "./state.js";
import { Versions } from "./versions.js";
import { WatchedStack } from "./watch.js";

/** @type {readonly [string, string][]} */
const VIEWS = [
  ["graph", "Graph"],
  ["resources", "Resources"],
  ["outputs", "Outputs"],
  ["events", "Events"],
  ["versions", "Versions"],
  ["snapshots", "Snapshots"],
];

/** @param {{project: string, rest: string[]}} props rest: the stack's name and id */
export function StackPage({ project, rest }) {
  const [name = "", id = ""] = rest;
  const looking = useMemo(() => new Looking(new WatchedStack(project, name, id)), []);
  const debugging = useMemo(() => new Debugging(looking), []);
  const { watched } = looking;
  useEffect(() => {
    watched.open();
    return () => watched.close();
  }, []);
  useEffect(() => looking.selectAsked(), [watched.model.value]);
  const stands = watched.stack.value?.stack_status ?? "";
  useEffect(() => {
    if (stands) document.title = `${name}: ${stands} · ${project} · Headgate`;
  }, [stands]);
  const asked = here.value.query.get("view") ?? "graph";
  const view = VIEWS.some(([one]) => one === asked) ? asked : "graph";
  /** @param {string} to */
  const show = (to) => ask({ view: to === "graph" ? "" : to });
  return html`<${Head} watched=${watched} />
    <${GoneBox} watched=${watched} />
    ${!watched.gone.value && html`<${ProblemBox} error=${watched.wrong.value} />`}
    ${(watched.stack.value || watched.model.value) && html`<${Views} view=${view} show=${show} />`}
    ${view === "graph" && html`<${GraphView} looking=${looking} debugging=${debugging} />`}
    ${view === "resources" && html`<${Resources} looking=${looking} show=${show} />`}
    ${view === "outputs" && html`<${Outputs} watched=${watched} />`}
    ${view === "events" && html`<${Events} looking=${looking} show=${show} />`}
    ${view === "snapshots" && html`<${Snapshots} watched=${watched} />`}
    ${
      view === "versions" &&
      html`<${Versions} watched=${watched} showTraversal=${(/** @type {number} */ number) =>
        ask({ view: "", traversal: String(number) })} />`
    }`;
}

/** @param {{view: string, show: (to: string) => void}} props */
function Views({ view, show }) {
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

/** @param {{looking: import("./state.js").Looking, debugging: Debugging}} props */
function GraphView({ looking, debugging }) {
  const { watched } = looking;
  const model = looking.model.value;
  const gone = watched.gone.value !== null;
  if (!model) {
    return watched.wrong.value || gone
      ? null
      : html`<p class="muted" role="status">Reading the graph…</p>`;
  }
  const past = looking.past.value !== null;
  return html`${
    traversalAsked() > 0
      ? html`<${Timeline} looking=${looking} />`
      : html`<${Bar} debugging=${debugging} />`
  }
    <div class="stack-graph" data-gone=${gone} data-past=${past} data-panel=${looking.subject.value !== null}>
      <div class="stack-drawing">
        <${Graph} key=${past ? "past" : "live"} model=${model} selected=${looking.selected}
          label=${past ? `Graph of ${watched.name} as it was` : `Graph of ${watched.name}`}
          canEdit=${may("write") && !gone} readonly=${past || gone}
          onSelect=${(/** @type {import("../graph/shapes.js").GraphNode | null} */ node) => looking.select(node?.key ?? null)}
          onBreakpoint=${(
            /** @type {string} */ _path,
            /** @type {"pre" | "post"} */ side,
            /** @type {boolean} */ on,
            /** @type {import("../graph/shapes.js").GraphNode} */ node,
          ) => debugging.mark(node, side, on)} />
      </div>
      <${Panel} looking=${looking} debugging=${debugging} />
    </div>`;
}
