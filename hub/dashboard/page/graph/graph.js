// The live graph of a stack with toolbar, search, grouping and breakpoints.

import { useKeys } from "../app/keys.js";
import { Icon } from "../parts/icon.js";
import { narrow } from "../parts/narrow.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../vendor/preact.js";
import { newArrangement } from "./drawing/arrangement.js";
import { GRAPH_KEYS, listenToKeys } from "./drawing/keys.js";
import { listenToPointer } from "./drawing/pointer.js";
import { canSetBreakpoint, sideOf } from "./drawing/sides.js";
import { Stage } from "./drawing/stage.js";
import { criticalPath } from "./fold/critical.js";
import { search } from "./fold/search.js";
import { tally } from "./fold/tally.js";
import { WORDS } from "./labels.js";

/**
 * @typedef {import("./model.js").GraphModel} GraphModel
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./fold/view.js").By} By
 * @typedef {import("../vendor/preact.js").Signal<string | null>} Key
 *
 * @typedef {object} Props
 * @property {GraphModel} model
 * @property {Key} [selected] key of the selected node; setting it shows the node
 * @property {(node: GraphNode | null) => void} [onSelect]
 * @property {(path: string, side: "pre" | "post", on: boolean, node: GraphNode) => void} [onBreakpoint]
 * @property {boolean} [canEdit] whether breakpoints may be set
 * @property {boolean} [readonly] a past graph: breakpoints cannot be set
 * @property {string} [label]
 * @property {import("./drawing/arrangement.js").Arrangement} [arrangement] of another graph of the stack
 * @property {ReadonlyMap<string, string>} [drift] observed states of resources with drift, by path
 */

/** @type {Record<By, string>} */
const FOLDS = {
  auto: "Group: auto",
  none: "Group: off",
  group: "Group: similar",
  type: "Group: type",
  layer: "Group: layer",
};
/** @type {ReadonlyMap<string, string>} */
const NO_DRIFT = new Map();
/** Minimum interval between updates of the toolbar and critical path, in milliseconds. */
const EVERY = 400;

/** @param {Props} props */
export function Graph(props) {
  const { model, selected, canEdit = false, readonly = false, label = "Graph" } = props;
  const { drift = NO_DRIFT } = props;
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const stage = useRef(/** @type {Stage | null} */ (null));
  const latest = useRef(props);
  latest.current = props;
  const arrangement = useMemo(() => props.arrangement ?? newArrangement(), []);
  const by = useSignal(arrangement.by);
  const query = useSignal("");
  const critical = useSignal(false);
  const folded = useSignal(true);
  const seeking = useRef(/** @type {HTMLInputElement | null} */ (null));
  const now = useSignal({ scale: 1, gates: 0, failed: 0, seconds: 0, found: 0, all: 0 });

  useKeys([...GRAPH_KEYS]);
  useEffect(() => {
    if (!host.current) return;
    const made = new Stage(host.current, model, arrangement);
    stage.current = made;
    const show = throttle(() => {
      const { counts, all } = tally(model.known.values());
      const path = critical.value
        ? criticalPath(model.tree, model.known, model.tree.root, Date.now())
        : null;
      const keys = path?.keys ?? [];
      if (keys.join() !== made.critical.join()) made.set({ critical: keys });
      now.value = {
        scale: made.camera.scale,
        gates: counts.gate ?? 0,
        failed: (counts.failed ?? 0) + (counts.stopped ?? 0),
        seconds: path?.seconds ?? 0,
        found: made.found?.size ?? 0,
        all,
      };
    });
    made.onChange = show.soon;
    const select = (/** @type {string | null} */ key) => {
      const node = key === null ? null : (model.node(key) ?? null);
      made.set({ selected: node?.key ?? null });
      if (latest.current.selected) latest.current.selected.value = node?.key ?? null;
      latest.current.onSelect?.(node);
    };
    const actions = {
      select,
      side: (/** @type {string} */ key, /** @type {"pre" | "post"} */ side) => {
        const [node, progress] = [model.node(key), model.known.get(key)];
        const { canEdit, readonly, onBreakpoint } = latest.current;
        if (!node || !progress || !canEdit || readonly || !canSetBreakpoint(node, progress, side))
          return;
        onBreakpoint?.(node.path, side, !sideOf(progress, side).set, node);
      },
    };
    const endings = [
      listenToPointer(made, actions),
      listenToKeys(made, actions, {
        seek: () => {
          seeking.current?.focus();
          if (!folded.value || document.activeElement === seeking.current) return;
          // A narrow window shows the field with the next rendering.
          folded.value = false;
          setTimeout(() => seeking.current?.focus());
        },
        critical: () => {
          critical.value = !critical.value;
        },
        clear: () => select(null),
      }),
      critical.subscribe(show.now),
      query.subscribe((text) => {
        const result = text.trim() ? new Set(search(model.tree, model.known, text)) : null;
        made.set({ found: result });
        show.now();
      }),
      selected?.subscribe((key) => {
        if (key === made.selected) return;
        made.set({ selected: key });
        if (key !== null) made.reveal(key);
      }) ?? (() => {}),
      show.end,
      () => made.destroy(),
    ];
    return () => {
      for (const end of endings) end();
    };
  }, [model]);
  useEffect(() => {
    stage.current?.set({ editable: canEdit && !readonly });
  }, [model, canEdit, readonly]);
  useEffect(() => {
    stage.current?.set({ drift });
  }, [model, drift]);

  /** @param {KeyboardEvent} event */
  const go = (event) => {
    const made = stage.current;
    const result = made?.found ? search(model.tree, model.known, query.value) : [];
    if (event.key === "Escape" && query.value) query.value = "";
    else if (event.key !== "Enter" || !made || !result.length) return;
    else {
      const next = result[(result.indexOf(made.focused ?? "") + 1) % result.length];
      if (next) made.reveal(next);
    }
    event.preventDefault();
  };
  const { scale, gates, failed, seconds, found, all } = now.value;
  return html`<section class="graph" aria-label=${label}>
    <div class="graph-tools" role="toolbar" aria-label="Graph" data-folded=${narrow.value && folded.value}>
      <label class="graph-search">
        <${Icon} name="search" />
        <span class="only-read">Search nodes</span>
        <input
          type="search"
          ref=${seeking}
          value=${query}
          placeholder="Name, type or state"
          onInput=${(/** @type {any} */ event) => {
            query.value = event.target.value;
          }}
          onKeyDown=${go}
        />
        ${query.value.trim() && html`<span class="graph-found" role="status">${found} of ${all}</span>`}
      </label>
      <span class="graph-room"></span>
      ${
        (gates > 0 || failed > 0) &&
        html`<button
          class="graph-waiting"
          data-state=${gates ? "gate" : "failed"}
          title="Zoom to these nodes (w)"
          onClick=${() => stage.current?.fitWaiting()}
        >
          <${Icon} name=${gates ? "gate" : "failed"} />
          ${gates ? `${gates} ${narrow.value ? "waiting" : WORDS.gate}` : `${failed} failed or stopped`}
        </button>`
      }
      <button
        class="graph-critical"
        aria-pressed=${critical.value}
        title="Longest path through the remaining nodes (c)"
        onClick=${() => {
          critical.value = !critical.value;
        }}
      >
        Critical path${critical.value && seconds > 0 ? ` · ${durationText(seconds)}` : ""}
      </button>
      <label class="graph-folds">
        <span class="only-read">Grouping</span>
        <select
          value=${by.value}
          title="Grouping of nodes"
          onChange=${(/** @type {any} */ event) => {
            by.value = event.target.value;
            stage.current?.groupBy(by.value);
          }}
        >
          ${Object.entries(FOLDS).map(([name, text]) => html`<option value=${name}>${text}</option>`)}
        </select>
      </label>
      <span class="graph-zoom" role="group" aria-label="Zoom">
        <button aria-label="Zoom out" title="Zoom out (−)" onClick=${() => stage.current?.zoom(0.8)}>−</button>
        <button title="Fit the graph (f)" onClick=${() => stage.current?.fit()}>
          <span class="only-read">Fit the graph, now at </span>${Math.round(100 * scale)}%
        </button>
        <button aria-label="Zoom in" title="Zoom in (+)" onClick=${() => stage.current?.zoom(1.25)}>+</button>
      </span>
      ${
        narrow.value &&
        html`<button aria-expanded=${!folded.value} aria-label="Search and group" onClick=${() => {
          folded.value = !folded.value;
        }}><${Icon} name="search" /> <span aria-hidden="true">▾</span></button>`
      }
    </div>
    <div
      class="graph-stage"
      ref=${host}
      role="application"
      aria-label=${`${label}: ${all} nodes. Arrow keys move along edges and layers, Enter selects, ? shows all shortcuts`}
    ></div>
    <p class="only-read" aria-live="polite">${gates ? `${gates} ${WORDS.gate}` : ""}</p>
  </section>`;
}

/**
 * @param {() => void} call
 * @returns {{ soon: () => void, now: () => void, end: () => void }} soon: at most once per EVERY milliseconds
 */
function throttle(call) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const now = () => {
    clearTimeout(timer);
    timer = undefined;
    call();
  };
  return {
    now,
    soon: () => {
      timer ??= setTimeout(now, EVERY);
    },
    end: () => clearTimeout(timer),
  };
}

/** @param {number} seconds */
function durationText(seconds) {
  if (seconds < 1) return "under 1 s";
  if (seconds < 90) return `about ${Math.round(seconds)} s`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} min`;
  return `about ${Math.round(seconds / 3600)} h`;
}
