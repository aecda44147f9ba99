/** The debugger: stepping, running to a node, and breakpoints. */

import { call } from "../api/client.js";
import { session } from "../api/session.js";
import { offeredDecisions } from "../inbox/rights.js";
import { signal } from "../vendor/preact.js";
import { keyOfHook } from "./view_state.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../graph/types.js").GraphNode} GraphNode */
/** @typedef {import("./types.js").Breakpoint} Breakpoint */
/** @typedef {import("./types.js").MissedBreakpoint} MissedBreakpoint */
/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./view_state.js").Subject} Subject */

/**
 * A step command.
 * @typedef {object} StepCommand
 * @property {string} name
 * @property {string} word
 * @property {string} key
 * @property {string} does
 * @property {"step" | "run" | "continue"} decision
 * @property {"into" | "out"} [how]
 */

/** In the order of the buttons. @type {readonly StepCommand[]} */
export const STEP_COMMANDS = [
  {
    name: "step",
    word: "Step",
    key: "s",
    does: "step: continue and stop before the next nodes that are ready",
    decision: "step",
  },
  {
    name: "into",
    word: "Step into",
    key: "d",
    does: "step into the nested stack",
    decision: "step",
    how: "into",
  },
  {
    name: "out",
    word: "Step out",
    key: "e",
    does: "step out: run the nested stack to its end, then stop",
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
    does: "run to the end; stop only where another approver is required",
    decision: "run",
  },
];

export class Debugging {
  /** @param {ViewState} viewState */
  constructor(viewState) {
    this.viewState = viewState;
    this.watched = viewState.watched;
    /** The error of the last command. @type {import("../vendor/preact.js").Signal<unknown>} */
    this.wrong = signal(null);
    /** The result of the last command as text. */
    this.result = signal("");
    /**
     * Nodes that waited at the breakpoint or had passed it.
     * @type {import("../vendor/preact.js").Signal<MissedBreakpoint[]>}
     */
    this.late = signal([]);
    this.busy = signal(false);
  }

  /** Whether a command is available for the selected hook. @param {StepCommand} command */
  opens(command) {
    const hook = this.viewState.hook.value;
    if (!hook || this.viewState.past.value || this.watched.gone.value) return false;
    if (!offeredDecisions(hook, session.value).includes(command.decision)) return false;
    if (command.how === "into") return this.#leadsInside(hook);
    if (command.how === "out") return hook.stack_id !== hook.root_stack_id;
    return true;
  }

  /** @param {StepCommand} command */
  async go(command) {
    const hook = this.viewState.hook.value;
    if (!hook || !this.opens(command)) return;
    if (hook.ask !== null) {
      this.viewState.select(keyOfHook(hook));
      this.result.value = `${placeOf(hook)} requires data with the answer. Enter it in the node panel.`;
      return;
    }
    await this.#try(async () => {
      const { decision, how } = command;
      const body = { decision, digest: hook.digest, ...(how ? { how } : {}) };
      await call("POST", this.watched.project, `/hooks/${hook.id}/signal`, body);
      this.result.value = `${placeOf(hook)}: ${command.word.toLowerCase()}.`;
    });
    this.watched.rereadHooks();
  }

  /** Runs the stack and stops before the operation of a node. @param {GraphNode} node */
  async runTo(node) {
    await this.#try(async () => {
      const body = { resource: this.viewState.within(node) };
      const done = await call("POST", this.watched.project, `${this.watched.path}/run-to`, body);
      this.late.value = done.too_late;
      this.result.value = done.too_late.length
        ? ""
        : `Running. The stack stops before ${node.path}.`;
    });
    this.watched.rereadHooks();
    this.watched.rereadGraph();
  }

  /**
   * Sets or clears a breakpoint before or after a node.
   * @param {GraphNode} node @param {"pre" | "post"} side @param {boolean} on
   */
  async mark(node, side, on) {
    const point = pointOf(node, side, this.viewState);
    const at = node.name ? this.viewState.within(node) : "";
    await this.#try(async () => {
      if (on) await this.#set(at, point);
      else await this.#clear(at, point);
    });
    this.watched.rereadBreakpoints();
    this.watched.rereadGraph();
  }

  /**
   * Sets a breakpoint at any point of a resource.
   * @param {Subject} subject @param {string} point
   */
  async hold(subject, point) {
    await this.#try(() => this.#set(this.viewState.within(subject), point));
    this.watched.rereadBreakpoints();
    this.watched.rereadGraph();
  }

  /** Removes a breakpoint that was set on the live stack. @param {Breakpoint} one */
  async remove(one) {
    await this.#try(async () => {
      await call("DELETE", this.watched.project, `${this.watched.path}/breakpoints/${one.id}`);
      this.result.value = `Removed the breakpoint at ${one.at || "the stack"} (${one.on}).`;
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
    this.result.value = `Set a breakpoint at ${at || "the stack"} (${point}).`;
  }

  /** @param {string} at @param {string} point */
  async #clear(at, point) {
    const ours = this.watched.breakpoints.value.filter((one) => one.at === at && one.on === point);
    if (ours.length === 0) {
      const where = `${at || "the stack"} at ${point}`;
      this.result.value = `The breakpoint for ${where} cannot be cleared here. It comes from a wider rule, the template, the environment or the operator.`;
      return;
    }
    for (const one of ours) await this.remove(one);
  }

  /** @param {() => Promise<void>} work */
  async #try(work) {
    if (this.busy.value) return;
    this.busy.value = true;
    this.wrong.value = null;
    this.result.value = "";
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
    const node = this.viewState.model.value?.node(keyOfHook(hook));
    return Boolean(node?.inside) || holdsStack(node?.type ?? "");
  }
}

/**
 * Whether a resource type creates a nested stack that does not exist yet. Existing nested stacks
 * are known from the graph.
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
 * The hook point before or after a node: "pre-update"; for a whole stack "pre-stack-update".
 * @param {GraphNode} node @param {"pre" | "post"} side @param {ViewState} viewState
 */
export function pointOf(node, side, viewState) {
  if (!node.name) {
    const action = viewState.model.value?.tree.stackGraphs.get(node.stack)?.action ?? "";
    return `${side}-stack-${action.toLowerCase()}`;
  }
  const operation = viewState.model.value?.progress(node.key).value.operation ?? "create";
  return `${side}-${operation}`;
}
