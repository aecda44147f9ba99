/** Going on by steps, and breakpoints: what the buttons, the keys and the graph have done. */

import { call } from "../api/client.js";
import { session } from "../api/session.js";
import { offered } from "../inbox/rights.js";
import { signal } from "../vendor/preact.js";
import { keyOfHook } from "./state.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../graph/shapes.js").GraphNode} GraphNode */
/** @typedef {import("./shapes.js").Breakpoint} Breakpoint */
/** @typedef {import("./shapes.js").Late} Late */
/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./state.js").Subject} Subject */

/**
 * A way to go on from a hook.
 * @typedef {object} Way
 * @property {string} name
 * @property {string} word
 * @property {string} key
 * @property {string} does
 * @property {"step" | "run" | "continue"} decision
 * @property {"into" | "out"} [how]
 */

/** In the order of their buttons. @type {readonly Way[]} */
export const WAYS = [
  {
    name: "step",
    word: "Step",
    key: "s",
    does: "step: go on, and stop before whatever is ready next",
    decision: "step",
  },
  {
    name: "into",
    word: "Step into",
    key: "d",
    does: "step down into the stack inside",
    decision: "step",
    how: "into",
  },
  {
    name: "out",
    word: "Step out",
    key: "e",
    does: "step out to its end: let the stack inside run on, and stop behind it",
    decision: "step",
    how: "out",
  },
  {
    name: "continue",
    word: "Continue",
    key: "k",
    does: "continue to the next breakpoint",
    decision: "continue",
  },
  {
    name: "run",
    word: "Run to end",
    key: "r",
    does: "run to the end, past breakpoints that are nobody else's to answer",
    decision: "run",
  },
];

export class Debugging {
  /** @param {Looking} looking */
  constructor(looking) {
    this.looking = looking;
    this.watched = looking.watched;
    /** Why what was asked for last was not done. @type {import("../vendor/preact.js").Signal<unknown>} */
    this.wrong = signal(null);
    /** What came of it, in words. */
    this.said = signal("");
    /** Where a breakpoint came too late. @type {import("../vendor/preact.js").Signal<Late[]>} */
    this.late = signal([]);
    this.busy = signal(false);
  }

  /** Whether a way is open from where it stands. @param {Way} way */
  opens(way) {
    const hook = this.looking.hook.value;
    if (!hook || this.looking.past.value || this.watched.gone.value) return false;
    if (!offered(hook, session.value).includes(way.decision)) return false;
    if (way.how === "into") return this.#leadsInside(hook);
    if (way.how === "out") return hook.stack_id !== hook.root_stack_id;
    return true;
  }

  /** @param {Way} way */
  async go(way) {
    const hook = this.looking.hook.value;
    if (!hook || !this.opens(way)) return;
    if (hook.ask !== null) {
      this.looking.select(keyOfHook(hook));
      this.said.value = `${placeOf(hook)} asks for something with its answer: give it at the node.`;
      return;
    }
    await this.#try(async () => {
      const { decision, how } = way;
      const body = { decision, digest: hook.digest, ...(how ? { how } : {}) };
      await call("POST", this.watched.project, `/hooks/${hook.id}/signal`, body);
      this.said.value = `${placeOf(hook)}: ${way.word.toLowerCase()}.`;
    });
    this.watched.rereadHooks();
  }

  /** Go on, and stop before anything is done to a node. @param {GraphNode} node */
  async runTo(node) {
    await this.#try(async () => {
      const body = { resource: this.looking.within(node) };
      const done = await call("POST", this.watched.project, `${this.watched.path}/run-to`, body);
      this.late.value = done.too_late;
      this.said.value = done.too_late.length ? "" : `It goes on, and stops before ${node.path}.`;
    });
    this.watched.rereadHooks();
    this.watched.rereadGraph();
  }

  /**
   * Set or clear a breakpoint at a side of a node.
   * @param {GraphNode} node @param {"pre" | "post"} side @param {boolean} on
   */
  async mark(node, side, on) {
    const point = pointOf(node, side, this.looking);
    const at = node.name ? this.looking.within(node) : "";
    await this.#try(async () => {
      if (on) await this.#set(at, point);
      else await this.#clear(at, point);
    });
    this.watched.rereadBreakpoints();
    this.watched.rereadGraph();
  }

  /** Set a breakpoint at any point of a resource. @param {Subject} subject @param {string} point */
  async hold(subject, point) {
    await this.#try(() => this.#set(this.looking.within(subject), point));
    this.watched.rereadBreakpoints();
    this.watched.rereadGraph();
  }

  /** Take one away that was set on the live stack. @param {Breakpoint} one */
  async remove(one) {
    await this.#try(async () => {
      await call("DELETE", this.watched.project, `${this.watched.path}/breakpoints/${one.id}`);
      this.said.value = `The breakpoint at ${one.at || "the stack"}, ${one.on}, is taken away.`;
    });
    this.watched.rereadBreakpoints();
    this.watched.rereadGraph();
  }

  /** @param {string} at @param {string} point */
  async #set(at, point) {
    const breakpoints = [at ? `${at}:${point}` : point];
    const path = `${this.watched.path}/breakpoints`;
    const done = await call("POST", this.watched.project, path, { breakpoints });
    this.late.value = done.too_late;
    this.said.value = `A breakpoint is set at ${at || "the stack"}, ${point}.`;
  }

  /** @param {string} at @param {string} point */
  async #clear(at, point) {
    const ours = this.watched.breakpoints.value.filter((one) => one.at === at && one.on === point);
    if (ours.length === 0) {
      const where = `${at || "the stack"} at ${point}`;
      this.said.value = `What holds ${where} was not set for it alone: a wider breakpoint does, or the template, the environment or the operator.`;
      return;
    }
    for (const one of ours) await this.remove(one);
  }

  /** @param {() => Promise<void>} work */
  async #try(work) {
    if (this.busy.value) return;
    this.busy.value = true;
    this.wrong.value = null;
    this.said.value = "";
    this.late.value = [];
    try {
      await work();
    } catch (error) {
      this.wrong.value = error;
    } finally {
      this.busy.value = false;
    }
  }

  /** @param {Hook} hook */
  #leadsInside(hook) {
    const node = this.looking.model.value?.node(keyOfHook(hook));
    return Boolean(node?.inside) || holdsStack(node?.type ?? "");
  }
}

/**
 * Whether a type is a template, whose stack is there only once it is made. Others that hold one
 * (groups) show it by what is inside.
 * @param {string} type
 */
function holdsStack(type) {
  return /\.(ya?ml|template|json)$/i.test(type) || /Group$/.test(type);
}

/** "db at pre-create". @param {Hook} hook */
export function placeOf(hook) {
  return `${hook.path || "the stack"} at ${hook.point}`;
}

/**
 * The point at a side of a node: "pre-update"; of a whole stack "pre-stack-update".
 * @param {GraphNode} node @param {"pre" | "post"} side @param {Looking} looking
 */
export function pointOf(node, side, looking) {
  if (!node.name) {
    const action = looking.model.value?.tree.walks.get(node.stack)?.action ?? "";
    return `${side}-stack-${action.toLowerCase()}`;
  }
  const operation = looking.model.value?.progress(node.key).value.operation ?? "create";
  return `${side}-${operation}`;
}
