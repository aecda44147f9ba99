/** The side panel: details of the selected node. */

import { href } from "../app/route.js";
import { displayState } from "../graph/fold/tally.js";
import { nameOf, operationOf, sentence } from "../graph/labels.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Breakable } from "../parts/breakable.js";
import { CopyableId } from "../parts/copy.js";
import { coalesce } from "../parts/fetch.js";
import { Icon } from "../parts/icon.js";
import { Loading } from "../parts/loading.js";
import { ProblemBox } from "../parts/problem.js";
import { EventList } from "../timeline/timeline.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { Breakpoints } from "./breakpoints.js";
import { DriftDetails } from "./drift.js";
import { StackExplanation } from "./explanation.js";
import { HealthAndProtection } from "./health.js";
import { EarlierHooks, OpenHooks } from "./hooks.js";
import { ResourceEvents } from "./resource_events.js";
import { Values } from "./values.js";
import { WaitingHooks } from "./waiting_hooks.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./view_state.js").Subject} Subject */
/** @typedef {import("./types.js").ResourceDetails} ResourceDetails */
/** @typedef {import("../graph/types.js").GraphNode} GraphNode */

/** @param {{viewState: ViewState, debugging: Debugging}} props */
export function Panel({ viewState, debugging }) {
  const subject = viewState.subject.value;
  if (!subject && viewState.replay.value) {
    return html`<aside class="stack-panel card" aria-label="Events">
      <h2>Events</h2>
      <${EventList} replay=${viewState.replay.value} />
    </aside>`;
  }
  if (!subject) {
    return html`<aside class="stack-panel card" aria-label="Node">
      <${WaitingHooks} viewState=${viewState} debugging=${debugging} />
      <${StackExplanation} viewState=${viewState} debugging=${debugging} />
      <p class="muted">Select a node in the graph to see its details: click it, or focus it and press Enter.</p>
    </aside>`;
  }
  return html`<${NodePanel} key=${subject.key} viewState=${viewState} debugging=${debugging} subject=${subject} />`;
}

/** @param {{viewState: ViewState, debugging: Debugging, subject: Subject}} props */
function NodePanel({ viewState, debugging, subject }) {
  const node = viewState.node.value;
  const data = useSignal(/** @type {ResourceDetails | null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  const refresh = useRef(() => {});
  useEffect(() => {
    if (!subject.resource) return;
    const { stop, reread } = watchResource(viewState, subject, data, failure);
    refresh.current = reread;
    return stop;
  }, [subject.key]);
  const close = () => viewState.select(null);
  const seen = data.value;
  return html`<aside class="stack-panel card" aria-labelledby="panel-title" onKeyDown=${(
    /** @type {KeyboardEvent} */ event,
  ) => {
    if (event.key === "Escape") close();
  }}>
    <div class="row">
      <h2 class="breaks" id="panel-title"><${Breakable} text=${node ? nameOf(node) : subject.resource} /></h2>
      <button class="plain stack-close" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>
    </div>
    ${node && html`<${State} viewState=${viewState} node=${node} />`}
    <${OpenHooks} viewState=${viewState} subject=${subject} />
    <${Identity} project=${viewState.watched.project} subject=${subject} seen=${seen} />
    ${subject.resource && !seen && !failure.value && html`<${Loading} what="the resource" />`}
    <${ProblemBox} error=${failure.value} />
    <${DriftDetails} viewState=${viewState} path=${subject.path} />
    <${EarlierHooks} viewState=${viewState} seen=${seen} />
    <${Breakpoints} debugging=${debugging} subject=${subject} node=${node} seen=${seen} />
    ${node && html`<${Dependencies} viewState=${viewState} node=${node} />`}
    ${seen && html`<${Values} node=${nodeDetails(seen, node)} seen=${seen} />`}
    ${seen && html`<${HealthAndProtection} viewState=${viewState} subject=${subject} seen=${seen} again=${() => refresh.current()} />`}
    ${subject.resource && html`<${ResourceEvents} viewState=${viewState} subject=${subject} />`}
  </aside>`;
}

/** The details of the selected node. @param {ResourceDetails} seen @param {GraphNode | null} node */
function nodeDetails(seen, node) {
  return seen.nodes.find((item) => item.id === node?.id) ?? null;
}

/**
 * The state of the node in the current traversal.
 * @param {{viewState: ViewState, node: GraphNode}} props
 */
function State({ viewState, node }) {
  const model = viewState.model.value;
  if (!model) return null;
  const progress = model.progress(node.key).value;
  const state = displayState(progress);
  const word = `${operationOf(node, progress)}: ${sentence(node, progress)}`;
  return html`<p class="row">
    <${Badge} state=${state} word=${word} />
    ${node.direction === "cleanup" && html`<span class="muted">cleanup</span>`}
    ${progress.hook?.deadline && html`<span class="muted">deadline <${Ago} at=${progress.hook.deadline} /></span>`}
    ${progress.until && html`<span class="muted">next check <${Ago} at=${progress.until} /></span>`}
  </p>`;
}

/** @param {ResourceDetails} seen */
function statusOf({ status }) {
  if (!status) return html`<span class="muted">not created yet</span>`;
  const response = `${status.action}_${status.status}`;
  return status.reason ? html`${response}<span class="muted">, ${status.reason}</span>` : response;
}

/** @param {{project: string, subject: Subject, seen: ResourceDetails | null}} props */
function Identity({ project, subject, seen }) {
  return html`<dl class="stack-facts-list">
    <dt>Path</dt><dd><code><${Breakable} text=${subject.path || "the stack"} /></code></dd>
    ${subject.type && html`<dt>Type</dt><dd><code><${Breakable} text=${subject.type} /></code></dd>`}
    ${
      seen?.nested_stack &&
      html`<dt>Nested stack</dt><dd><a href=${href(project, "stack", seen.nested_stack.name, seen.nested_stack.id)}>${seen.nested_stack.name}</a></dd>`
    }
    ${
      seen &&
      html`<dt>Status</dt><dd>${statusOf(seen)}</dd>
        <dt>Physical ID</dt><dd>${seen.physical_id ? html`<${CopyableId} id=${seen.physical_id} what="the physical ID" />` : "none yet"}</dd>`
    }
  </dl>`;
}

/**
 * The dependencies of the node and its dependents.
 * @param {{viewState: ViewState, node: GraphNode}} props
 */
function Dependencies({ viewState, node }) {
  return html`<section class="column">
    <h3>Dependencies</h3>
    <${Links} viewState=${viewState} title="Depends on" keys=${node.before} none="nothing" />
    <${Links} viewState=${viewState} title="Required by" keys=${node.after} none="nothing" />
  </section>`;
}

/** Maximum number of links shown. */
const LINKS = 40;

/** @param {{viewState: ViewState, title: string, keys: string[], none: string}} props */
function Links({ viewState, title, keys, none }) {
  return html`<p class="row">
    <span class="muted">${title}</span>
    ${keys.length === 0 && html`<span>${none}</span>`}
    ${keys.slice(0, LINKS).map((key) => html`<${Link} key=${key} viewState=${viewState} to=${key} />`)}
    ${keys.length > LINKS && html`<span>and ${keys.length - LINKS} more</span>`}
  </p>`;
}

/** @param {{viewState: ViewState, to: string}} props */
function Link({ viewState, to }) {
  const model = viewState.model.value;
  const node = model?.node(to);
  if (!model || !node) return null;
  const state = displayState(model.progress(to).value);
  const cleanup = node.direction === "cleanup" ? " (cleanup)" : "";
  return html`<button class="stack-link" onClick=${() => viewState.select(to)}>
    <${Badge} state=${state} word=${nameOf(node) + cleanup} />
  </button>`;
}

/**
 * Fetches the details of a resource, and again after each of its events.
 * @param {ViewState} viewState @param {Subject} subject
 * @param {import("../vendor/preact.js").Signal<ResourceDetails | null>} data
 * @param {import("../vendor/preact.js").Signal<unknown>} failure
 */
function watchResource(viewState, subject, data, failure) {
  const { watched } = viewState;
  let ended = false;
  const reread = coalesce(async () => {
    if (ended) return;
    try {
      const response = await watched.of(subject, "/inspect");
      if (ended) return;
      data.value = response;
      failure.value = null;
    } catch (error) {
      if (!ended) failure.value = error;
    }
  });
  const stops = [
    watched.events.subscribe((events) => {
      const last = events.at(-1);
      if (!last || last.subject === subject.path || last.type.startsWith("headgate.stack."))
        reread();
    }),
    watched.breakpoints.subscribe(() => reread()),
  ];
  return {
    reread,
    stop: () => {
      ended = true;
      for (const stop of stops) stop();
    },
  };
}
