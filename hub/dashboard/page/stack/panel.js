/** Everything about one resource, beside the graph. */

import { href } from "../app/route.js";
import { shown } from "../graph/fold/tally.js";
import { nameOf, operationOf, sentence } from "../graph/words.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { repeated } from "../parts/repeated.js";
import { MomentList } from "../timeline/moment_list.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { Breakpoints } from "./breakpoints.js";
import { Happened } from "./happened.js";
import { Hooks } from "./hooks.js";
import { Marks } from "./marks.js";
import { Values } from "./values.js";
import { Why } from "./why.js";

/** @typedef {import("./debugging.js").Debugging} Debugging */
/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./state.js").Subject} Subject */
/** @typedef {import("./shapes.js").Inspected} Inspected */
/** @typedef {import("../graph/shapes.js").GraphNode} GraphNode */

/** @param {{looking: Looking, debugging: Debugging}} props */
export function Panel({ looking, debugging }) {
  const subject = looking.subject.value;
  if (!subject && looking.replay.value) {
    return html`<aside class="stack-panel card" aria-label="Events">
      <h2>What happened</h2>
      <${MomentList} replay=${looking.replay.value} />
    </aside>`;
  }
  if (!subject) {
    return html`<aside class="stack-panel card" aria-label="Node">
      <h2>Why does it not go on?</h2>
      <${Why} looking=${looking} />
      <p class="muted">Press a node of the graph, or Enter on it, to see all about it.</p>
    </aside>`;
  }
  return html`<${About} key=${subject.key} looking=${looking} debugging=${debugging} subject=${subject} />`;
}

/** @param {{looking: Looking, debugging: Debugging, subject: Subject}} props */
function About({ looking, debugging, subject }) {
  const node = looking.node.value;
  const found = useSignal(/** @type {Inspected | null} */ (null));
  const wrong = useSignal(/** @type {unknown} */ (null));
  const again = useRef(() => {});
  useEffect(() => {
    if (!subject.resource) return;
    const { stop, reread } = watchResource(looking, subject, found, wrong);
    again.current = reread;
    return stop;
  }, [subject.key]);
  const close = () => looking.select(null);
  const seen = found.value;
  return html`<aside class="stack-panel card" aria-labelledby="panel-title" onKeyDown=${(
    /** @type {KeyboardEvent} */ event,
  ) => {
    if (event.key === "Escape") close();
  }}>
    <div class="row">
      <h2 class="breaks" id="panel-title">${node ? nameOf(node) : subject.resource}</h2>
      <button class="plain stack-close" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>
    </div>
    ${node && html`<${State} looking=${looking} node=${node} />`}
    <${Identity} project=${looking.watched.project} subject=${subject} seen=${seen} />
    <${ProblemBox} error=${wrong.value} />
    <${Hooks} looking=${looking} subject=${subject} seen=${seen} />
    <${Breakpoints} debugging=${debugging} subject=${subject} node=${node} seen=${seen} />
    ${node && html`<${Around} looking=${looking} node=${node} />`}
    ${seen && html`<${Values} node=${ofNode(seen, node)} seen=${seen} />`}
    ${seen && html`<${Marks} looking=${looking} subject=${subject} seen=${seen} again=${() => again.current()} />`}
    ${subject.resource && html`<${Happened} looking=${looking} subject=${subject} />`}
  </aside>`;
}

/** What is known of the node that is looked at. @param {Inspected} seen @param {GraphNode | null} node */
function ofNode(seen, node) {
  return seen.nodes.find((one) => one.id === node?.id) ?? null;
}

/** How it stands in the change. @param {{looking: Looking, node: GraphNode}} props */
function State({ looking, node }) {
  const model = looking.model.value;
  if (!model) return null;
  const progress = model.progress(node.key).value;
  const state = shown(progress);
  const word = `${operationOf(node, progress)}: ${sentence(progress)}`;
  return html`<p class="row">
    <${Badge} state=${state} word=${word} />
    ${node.direction === "cleanup" && html`<span class="muted">clears away</span>`}
    ${progress.hook?.deadline && html`<span class="muted">deadline <${Ago} at=${progress.hook.deadline} /></span>`}
    ${progress.until && html`<span class="muted">looked at again <${Ago} at=${progress.until} /></span>`}
  </p>`;
}

/** @param {Inspected} seen */
function statusOf({ status }) {
  if (!status) return html`<span class="muted">it is yet to be</span>`;
  const said = `${status.action}_${status.status}`;
  return status.reason ? html`${said}<span class="muted">, ${status.reason}</span>` : said;
}

/** @param {{project: string, subject: Subject, seen: Inspected | null}} props */
function Identity({ project, subject, seen }) {
  return html`<dl class="stack-facts-list">
    <dt>Path</dt><dd><code>${subject.path || "the stack"}</code></dd>
    ${subject.type && html`<dt>Type</dt><dd><code>${subject.type}</code></dd>`}
    ${
      seen?.inside &&
      html`<dt>Holds</dt><dd><a href=${href(project, "stack", seen.inside.name, seen.inside.id)}>${seen.inside.name}</a></dd>`
    }
    ${
      seen &&
      html`<dt>Status</dt><dd>${statusOf(seen)}</dd>
        <dt>Physical id</dt><dd><code>${seen.physical_id || "none yet"}</code></dd>`
    }
  </dl>`;
}

/** What it comes after, and what comes after it. @param {{looking: Looking, node: GraphNode}} props */
function Around({ looking, node }) {
  return html`<section class="column">
    <h3>Dependencies</h3>
    <${Links} looking=${looking} title="After" keys=${node.before} none="nothing: it may begin at once" />
    <${Links} looking=${looking} title="Before" keys=${node.after} none="nothing waits for it" />
  </section>`;
}

/** As many as somebody reads. */
const LINKS = 40;

/** @param {{looking: Looking, title: string, keys: string[], none: string}} props */
function Links({ looking, title, keys, none }) {
  return html`<p class="row">
    <span class="muted">${title}</span>
    ${keys.length === 0 && html`<span>${none}</span>`}
    ${keys.slice(0, LINKS).map((key) => html`<${Link} key=${key} looking=${looking} to=${key} />`)}
    ${keys.length > LINKS && html`<span>and ${keys.length - LINKS} more</span>`}
  </p>`;
}

/** @param {{looking: Looking, to: string}} props */
function Link({ looking, to }) {
  const model = looking.model.value;
  const node = model?.node(to);
  if (!model || !node) return null;
  const state = shown(model.progress(to).value);
  const cleanup = node.direction === "cleanup" ? " (clears away)" : "";
  return html`<button class="stack-link" onClick=${() => looking.select(to)}>
    <${Badge} state=${state} word=${nameOf(node) + cleanup} />
  </button>`;
}

/**
 * Look at a resource, and again when something happens to it.
 * @param {Looking} looking @param {Subject} subject
 * @param {import("../vendor/preact.js").Signal<Inspected | null>} found
 * @param {import("../vendor/preact.js").Signal<unknown>} wrong
 */
function watchResource(looking, subject, found, wrong) {
  const { watched } = looking;
  let ended = false;
  const reread = repeated(async () => {
    if (ended) return;
    try {
      const said = await watched.of(subject, "/inspect");
      if (ended) return;
      found.value = said;
      wrong.value = null;
    } catch (error) {
      if (!ended) wrong.value = error;
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
