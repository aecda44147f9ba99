// The reducer of events: `(nodes, event) -> changed nodes`. Used for live updates and the timeline.
// Pure.

import { keyOf } from "../tree.js";
import { Draft, ENDED } from "./draft.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../types.js").EventDocument} EventDocument
 * @typedef {import("../types.js").NodeDocument} NodeDocument
 * @typedef {import("../types.js").Phase} Phase
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {import("../types.js").StackGraph} StackGraph
 * @typedef {ReadonlyMap<string, Progress>} Known
 *
 * @typedef {object} Folded
 * @property {Map<string, Progress>} changes by key
 * @property {boolean} outdated a new traversal started, or a node was added: fetch the graph again
 */

const BLOCKED = "a dependency did not succeed";
/** The reason of a node that waits for its nested stack. */
export const NESTED_STACK = "its nested stack";

/**
 * @param {NodeDocument} node
 * @returns {Progress} state of the node in the document
 */
export function progressOf(node) {
  const isHook = node.state === "parked" && node.phase !== "execute";
  return {
    state: node.state,
    phase: node.phase,
    operation: node.operation,
    reason: node.reason,
    hook: isHook ? { id: "", point: pointOf(node), deadline: null, opened: null } : null,
    breakpoints: node.breakpoints,
    started: node.started_at ?? null,
    ended: node.ended_at ?? null,
    until: node.until ?? null,
    reported: node.state !== "waiting" && node.state !== "ready",
  };
}

/**
 * @param {NodeDocument} node
 * @returns {string} the point at which it waits, as far as the document shows it
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
 * The nodes at the start of their traversals.
 *
 * @param {Tree} tree
 * @returns {Map<string, Progress>}
 */
export function initialProgress(tree) {
  /** @type {Map<string, Progress>} */
  const result = new Map();
  for (const key of tree.nodes.keys()) result.set(key, initialNode(tree, key));
  return result;
}

/**
 * @param {Tree} tree
 * @param {string} key
 * @returns {Progress}
 */
function initialNode(tree, key) {
  const document = /** @type {NodeDocument} */ (tree.documents.get(key));
  return {
    ...progressOf(document),
    state: tree.nodes.get(key)?.before.length ? "waiting" : "ready",
    phase: "pre",
    reason: null,
    hook: null,
    started: null,
    ended: null,
    until: null,
    reported: false,
  };
}

/**
 * The changes caused by an event.
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
    const key = nodeKeyOf(tree, event);
    const moment = rest.at(-1) ?? "";
    if (key !== null && tree.nodes.has(key)) {
      (of === "hook" ? ofHook : ofResource)(draft, key, moment, event);
    }
    return { changes: draft.changes, outdated: key !== null && isNodeMissing(tree, key, event) };
  }
  return { changes: draft.changes, outdated: false };
}

/**
 * Whether the graph has more nodes since this event: a replacement adds the delete of the resource.
 *
 * @param {Tree} tree
 * @param {string} key
 * @param {EventDocument} event of the traversal that the tree shows
 */
function isNodeMissing(tree, key, event) {
  const node = tree.nodes.get(key);
  if (!node) return true;
  if (event.type !== "headgate.resource.replace.completed") return false;
  const nodes = [...tree.nodes.values()];
  return !nodes.some(({ path, direction }) => path === node.path && direction === "cleanup");
}

/**
 * @param {Draft} draft
 * @param {string} key
 * @param {string} moment
 * @param {EventDocument} event
 */
function ofResource(draft, key, moment, event) {
  const now = draft.get(key);
  if (ENDED.has(now.state) && now.reported) return;
  const { operation, resource } = event.data;
  const reason = resource?.reason ?? null;
  draft.markDependenciesDone(key);
  const reported = { reported: true, operation, hook: null };
  const endedFields = { ...reported, ended: event.time };
  switch (moment) {
    case "started":
      draft.set(key, {
        ...reported,
        state: "running",
        phase: "execute",
        reason: null,
        started: event.time,
      });
      break;
    case "progress":
    case "restarted":
      draft.set(key, { ...reported, state: "running", phase: "execute" });
      break;
    case "retrying":
      draft.set(key, { ...reported, state: "parked", phase: "execute", reason });
      break;
    case "completed":
      draft.set(key, { ...endedFields, state: "done", phase: "post", reason: null });
      break;
    case "failed":
      draft.set(key, { ...endedFields, state: "failed", reason });
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
    draft.markDependenciesDone(key);
    const operation = phase === "confirm" ? now.operation : operationOf(hook.point, now.operation);
    const stops = hook.mode === "stop";
    const reason = stops ? `breakpoint ${hook.point}` : null;
    const state = stops ? "stopped" : "parked";
    draft.set(key, {
      state,
      phase,
      operation,
      reason,
      hook: stops ? null : open,
      reported: true,
      ended: null,
    });
    return;
  }
  if (!CLOSES.has(moment)) {
    if (now.hook) draft.set(key, { hook: open });
    return;
  }
  if (now.state !== "parked" || now.phase !== phase) return;
  const decision = moment === "superseded" ? "superseded" : hook.decision;
  draft.set(key, {
    hook: null,
    ...afterDecision(decision, phase, hook, event.time, now.operation),
  });
}

const CLOSES = new Set(["answered", "expired", "superseded"]);

/**
 * The state of a node after its hook was decided.
 *
 * @param {string | null} decision
 * @param {Phase} phase
 * @param {any} hook
 * @param {string} time
 * @param {string} operation
 * @returns {Partial<Progress>}
 */
function afterDecision(decision, phase, hook, time, operation) {
  const gate = operation === "begin" || operation === "finish";
  if (decision === "stop") {
    return {
      state: "stopped",
      reason: `no answer at ${hook.point} before its deadline`,
      ended: time,
    };
  }
  if (phase === "confirm") return { state: "running", phase: "execute" };
  if (decision === "superseded") return { state: "dropped", reason: "superseded", ended: time };
  if (decision === "reject") {
    const author = hook.decided_by ? ` by ${hook.decided_by}` : "";
    const reason = `${hook.point} rejected${author}${hook.reason ? `: ${hook.reason}` : ""}`;
    // For a resource, an event with its own reason follows.
    return { state: "failed", reason, ended: time, reported: gate };
  }
  // A stack-level hook node has no resource events: approval finishes it.
  if (phase === "post" || gate) return { state: "done", ended: time };
  return { state: "ready", phase: "pre", reason: null };
}

/**
 * @param {string} point
 * @returns {Phase}
 */
function phaseAt(point) {
  // A stack-level hook is a node without an operation.
  if (point.includes("-stack-")) return "pre";
  if (point === "pre-batch" || point === "pre-scale-in") return "confirm";
  if (point.startsWith("pre-")) return "pre";
  return point.startsWith("post-") ? "post" : "confirm";
}

/**
 * @param {string} point
 * @param {string} operation known so far
 */
function operationOf(point, operation) {
  const name = point.slice(point.indexOf("-") + 1);
  return name.startsWith("stack-") ? operation : name;
}

/**
 * @param {Draft} draft
 * @param {EventDocument} event
 * @returns {Folded}
 */
function ofStack(draft, event) {
  const { tree, changes } = draft;
  const path = stackOf(event);
  const stackGraph = tree.stackGraphs.get(path);
  const within = tree.root === "" || path === tree.root || path.startsWith(`${tree.root}/`);
  if (!within) return { changes, outdated: false };
  const moment = event.type.split(".").at(-1);
  const { traversal } = event.data;
  if (!stackGraph || traversal > stackGraph.traversal)
    return { changes, outdated: moment === "started" };
  if (traversal < stackGraph.traversal) return { changes, outdated: false };
  if (moment === "started") {
    for (const key of stackGraph.keys) changes.set(key, initialNode(tree, key));
    setNestedState(draft, path, "parked");
  } else if (moment === "completed") {
    for (const key of stackGraph.keys) finish(draft, key, event.time);
    setNestedState(draft, path, "running");
  } else {
    endUnsuccessfully(draft, stackGraph, event);
    setNestedState(draft, path, "running");
  }
  return { changes, outdated: false };
}

/**
 * The node of a nested stack waits for it, or continues.
 *
 * @param {Draft} draft
 * @param {string} path
 * @param {"parked" | "running"} state
 */
function setNestedState(draft, path, state) {
  const key = draft.tree.holder.get(path);
  if (key === undefined) return;
  const now = draft.get(key);
  if (ENDED.has(now.state) || now.hook) return;
  draft.markDependenciesDone(key);
  const reason = state === "parked" ? NESTED_STACK : null;
  draft.set(key, { state, phase: "execute", reported: true, reason });
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
 * A traversal that ended has only nodes left that could not start. An interrupted one may still have
 * nodes in progress, or had hooks that were closed with it: dropped nodes have the reason of the stack.
 *
 * @param {Draft} draft
 * @param {StackGraph} stackGraph
 * @param {EventDocument} event
 */
function endUnsuccessfully(draft, stackGraph, event) {
  const { time } = event;
  const closed = stackGraph.keys.filter((key) => draft.get(key).state === "dropped");
  const busy = stackGraph.keys.some((key) => {
    const { state, hook } = draft.get(key);
    return (state === "running" || state === "parked") && !hook;
  });
  const interrupted = busy || closed.length > 0;
  const reason = interrupted ? event.data.stack.reason : BLOCKED;
  for (const key of closed) draft.set(key, { reason });
  for (const key of stackGraph.keys) {
    const { state } = draft.get(key);
    if (state !== "waiting" && state !== "ready") continue;
    const silent = !busy && draft.isFree(key);
    draft.set(key, silent ? { state: "done" } : { state: "dropped", reason, ended: time });
  }
}

/**
 * @param {EventDocument} event
 * @returns {string} path of its stack
 */
export function stackOf(event) {
  return event.stackpath ?? event.data?.stack?.path ?? "";
}

/**
 * @param {Tree} tree
 * @param {EventDocument} event of a resource or hook
 * @returns {string | null} key of the node, which the tree may lack; null: no node of this traversal
 */
function nodeKeyOf(tree, event) {
  const path = stackOf(event);
  const { node, traversal } = event.data;
  if (typeof node !== "number" || tree.stackGraphs.get(path)?.traversal !== traversal) return null;
  return keyOf(path, node);
}
