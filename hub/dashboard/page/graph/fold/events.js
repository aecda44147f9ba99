// The fold of events: `(nodes, event) -> changes of nodes`. The same for what happens now and for what
// happened. Pure.
import { aboutNode, stackOf } from "./about.js";
import { Draft, ENDED } from "./draft.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../shapes.js").EventDocument} EventDocument
 * @typedef {import("../shapes.js").NodeDocument} NodeDocument
 * @typedef {import("../shapes.js").Phase} Phase
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {import("../shapes.js").Walk} Walk
 * @typedef {ReadonlyMap<string, Progress>} Known
 *
 * @typedef {object} Folded
 * @property {Map<string, Progress>} changes by key
 * @property {boolean} stale the graph itself is another one now, and is to be fetched anew
 */

const BLOCKED = "what it waits for did not end well";

/**
 * @param {NodeDocument} node
 * @returns {Progress} as the document says it
 */
export function asTold(node) {
  const asks = node.state === "parked" && node.phase !== "act";
  return {
    state: node.state,
    phase: node.phase,
    operation: node.operation,
    reason: node.reason,
    hook: asks ? { id: "", point: pointOf(node), deadline: null, opened: null } : null,
    breakpoints: node.breakpoints,
    started: node.started_at ?? null,
    ended: node.ended_at ?? null,
    until: node.until ?? null,
    told: node.state !== "waiting" && node.state !== "ready",
  };
}

/**
 * @param {NodeDocument} node
 * @returns {string} the point that it waits at, as far as the node tells
 */
function pointOf({ phase, operation, breakpoints }) {
  const usual = `${phase}-${operation}`;
  if (operation === "begin" || operation === "finish") {
    return breakpoints.find((point) => point.includes("-stack-")) ?? usual;
  }
  if (phase !== "confirm") return usual;
  return breakpoints.find((point) => !/^(pre|post)-(?!batch|scale-in)/.test(point)) ?? usual;
}

/**
 * The nodes as they were when their traversals began.
 *
 * @param {Tree} tree
 * @returns {Map<string, Progress>}
 */
export function beginning(tree) {
  /** @type {Map<string, Progress>} */
  const found = new Map();
  for (const key of tree.nodes.keys()) found.set(key, unbegun(tree, key));
  return found;
}

/**
 * @param {Tree} tree
 * @param {string} key
 * @returns {Progress}
 */
function unbegun(tree, key) {
  const document = /** @type {NodeDocument} */ (tree.documents.get(key));
  return {
    ...asTold(document),
    state: tree.nodes.get(key)?.before.length ? "waiting" : "ready",
    phase: "pre",
    reason: null,
    hook: null,
    started: null,
    ended: null,
    until: null,
    told: false,
  };
}

/**
 * What an event changes.
 *
 * @param {Tree} tree
 * @param {Known} known
 * @param {EventDocument} event
 * @returns {Folded}
 */
export function fold(tree, known, event) {
  const [, of = "", ...rest] = event.type.split(".");
  const draft = new Draft(tree, known);
  if (of === "stack") return ofStack(draft, event);
  if (of === "resource" || of === "hook") {
    const key = aboutNode(tree, event);
    const moment = rest.at(-1) ?? "";
    if (key !== null) (of === "hook" ? ofHook : ofResource)(draft, key, moment, event);
  }
  return { changes: draft.changes, stale: false };
}

/**
 * @param {Draft} draft
 * @param {string} key
 * @param {string} moment
 * @param {EventDocument} event
 */
function ofResource(draft, key, moment, event) {
  const now = draft.get(key);
  if (ENDED.has(now.state) && now.told) return;
  const { operation, resource } = event.data;
  const reason = resource?.reason ?? null;
  draft.reached(key);
  const told = { told: true, operation, hook: null };
  const over = { ...told, ended: event.time };
  switch (moment) {
    case "started":
      draft.set(key, {
        ...told,
        state: "running",
        phase: "act",
        reason: null,
        started: event.time,
      });
      break;
    case "progress":
      draft.set(key, { ...told, state: "running", phase: "act" });
      break;
    case "retrying":
      draft.set(key, { ...told, state: "parked", phase: "act", reason });
      break;
    case "completed":
      draft.set(key, { ...over, state: "done", phase: "post", reason: null });
      break;
    case "failed":
      draft.set(key, { ...over, state: "failed", reason });
      break;
  }
}

/**
 * @param {Draft} draft
 * @param {string} key
 * @param {string} moment
 * @param {EventDocument} event
 */
function ofHook(draft, key, moment, event) {
  const { hook } = event.data;
  if (hook.mode === "notify" || hook.dry) return;
  const now = draft.get(key);
  const phase = phaseAt(hook.point);
  const open = { id: hook.id, point: hook.point, deadline: hook.deadline, opened: hook.opened_at };
  if (moment === "waiting") {
    draft.reached(key);
    const operation = phase === "confirm" ? now.operation : operationOf(hook.point, now.operation);
    const stops = hook.mode === "stop";
    const reason = stops ? `breakpoint ${hook.point}` : null;
    const state = stops ? "stopped" : "parked";
    draft.set(key, { state, phase, operation, reason, hook: stops ? null : open, told: true });
    return;
  }
  if (!CLOSES.has(moment)) {
    if (now.hook) draft.set(key, { hook: open });
    return;
  }
  if (now.state !== "parked" || now.phase !== phase) return;
  const decision = moment === "superseded" ? "superseded" : hook.decision;
  draft.set(key, { hook: null, ...after(decision, phase, hook, event.time, now.operation) });
}

const CLOSES = new Set(["answered", "expired", "superseded"]);

/**
 * What becomes of a node whose hook was decided.
 *
 * @param {string | null} decision
 * @param {Phase} phase
 * @param {any} hook
 * @param {string} time
 * @param {string} operation
 * @returns {Partial<Progress>}
 */
function after(decision, phase, hook, time, operation) {
  const gate = operation === "begin" || operation === "finish";
  if (decision === "stop") {
    return { state: "stopped", reason: `nobody answered ${hook.point} in time`, ended: time };
  }
  if (phase === "confirm") return { state: "running", phase: "act" };
  if (decision === "superseded") return { state: "dropped", reason: "superseded", ended: time };
  if (decision === "reject") {
    const by = hook.decided_by ? ` by ${hook.decided_by}` : "";
    const reason = `${hook.point} rejected${by}${hook.reason ? `: ${hook.reason}` : ""}`;
    // Of a resource, an event follows that says so in its own words.
    return { state: "failed", reason, ended: time, told: gate };
  }
  // A gate has no events of its own: when it was let go, it is passed.
  if (phase === "post" || gate) return { state: "done", ended: time };
  return { state: "ready", phase: "pre", reason: null };
}

/**
 * @param {string} point
 * @returns {Phase}
 */
function phaseAt(point) {
  // A gate is a node of its own, and has nothing to do but to ask.
  if (point.includes("-stack-")) return "pre";
  if (point === "pre-batch" || point === "pre-scale-in") return "confirm";
  if (point.startsWith("pre-")) return "pre";
  return point.startsWith("post-") ? "post" : "confirm";
}

/**
 * @param {string} point
 * @param {string} operation as known so far
 */
function operationOf(point, operation) {
  const said = point.slice(point.indexOf("-") + 1);
  return said.startsWith("stack-") ? operation : said;
}

/**
 * @param {Draft} draft
 * @param {EventDocument} event
 * @returns {Folded}
 */
function ofStack(draft, event) {
  const { tree, changes } = draft;
  const path = stackOf(event);
  const walk = tree.walks.get(path);
  const within = tree.root === "" || path === tree.root || path.startsWith(`${tree.root}/`);
  if (!within) return { changes, stale: false };
  const moment = event.type.split(".").at(-1);
  const { traversal } = event.data;
  if (!walk || traversal > walk.traversal) return { changes, stale: moment === "started" };
  if (traversal < walk.traversal) return { changes, stale: false };
  if (moment === "started") {
    for (const key of walk.keys) changes.set(key, unbegun(tree, key));
    hold(draft, path, "parked");
  } else if (moment === "completed") {
    for (const key of walk.keys) finish(draft, key, event.time);
    hold(draft, path, "running");
  } else {
    endBadly(draft, walk, event.time);
    hold(draft, path, "running");
  }
  return { changes, stale: false };
}

/**
 * The node around a stack inside waits for it, or goes on.
 *
 * @param {Draft} draft
 * @param {string} path
 * @param {"parked" | "running"} state
 */
function hold(draft, path, state) {
  const key = draft.tree.holder.get(path);
  if (key === undefined) return;
  const now = draft.get(key);
  if (ENDED.has(now.state) || now.hook) return;
  draft.reached(key);
  const reason = state === "parked" ? "the stack inside" : null;
  draft.set(key, { state, phase: "act", told: true, reason });
}

/**
 * @param {Draft} draft
 * @param {string} key
 * @param {string} time
 */
function finish(draft, key, time) {
  if (ENDED.has(draft.get(key).state)) return;
  draft.set(key, { state: "done", hook: null, ended: time });
}

/**
 * A traversal that ended by itself has nothing left but what could not begin. One that was cut short
 * still has something under way.
 *
 * @param {Draft} draft
 * @param {Walk} walk
 * @param {string} time
 */
function endBadly(draft, walk, time) {
  const busy = walk.keys.some((key) => {
    const { state, hook } = draft.get(key);
    return (state === "running" || state === "parked") && !hook;
  });
  for (const key of walk.keys) {
    const { state } = draft.get(key);
    if (state !== "waiting" && state !== "ready") continue;
    const silent = !busy && draft.isFree(key);
    draft.set(key, silent ? { state: "done" } : { state: "dropped", reason: BLOCKED, ended: time });
  }
}
