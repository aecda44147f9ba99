/** The debugger: stepping, running to a node, and breakpoints. */

import { call } from "../api/client.js";
import { session } from "../api/session.js";
import { dataFormFor } from "../inbox/data_form.js";
import { change, draftOf } from "../inbox/drafts.js";
import { offeredDecisions } from "../inbox/rights.js";
import { decide } from "../inbox/submit.js";
import { signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../graph/types.js").GraphNode} GraphNode */
/** @typedef {import("./types.js").Breakpoint} Breakpoint */
/** @typedef {import("./types.js").MissedBreakpoint} MissedBreakpoint */
/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./view_state.js").Subject} Subject */

/**
 * A command that answers a hook.
 * @typedef {object} AnswerCommand
 * @property {string} name
 * @property {string} word
 * @property {"step" | "run" | "continue" | "repair" | "adopt"} decision
 * @property {"into" | "out"} [how]
 *
 * A step command, with its key.
 * @typedef {AnswerCommand & {key: string, description: string}} StepCommand
 */

/** In the order of the buttons. @type {readonly StepCommand[]} */
export const STEP_COMMANDS = [
  {
    name: "step",
    word: "Step",
    key: "s",
    description: "step: continue and stop before the next nodes that are ready",
    decision: "step",
  },
  {
    name: "into",
    word: "Step into",
    key: "d",
    description: "step into the nested stack",
    decision: "step",
    how: "into",
  },
  {
    name: "out",
    word: "Step out",
    key: "e",
    description: "step out: run the nested stack to its end, then stop",
    decision: "step",
    how: "out",
  },
  {
    name: "continue",
    word: "Continue",
    key: "k",
    description: "continue to the next breakpoint",
    decision: "continue",
  },
  {
    name: "run",
    word: "Run to end",
    key: "r",
    description: "run to the end; stop only where another approver is required",
    decision: "run",
  },
];

/** Commands that answer a hook about drift. @type {readonly AnswerCommand[]} */
export const DRIFT_COMMANDS = [
  { name: "repair", word: "Repair", decision: "repair" },
  { name: "adopt", word: "Adopt observed values", decision: "adopt" },
];

export class Debugging {
  /** @param {ViewState} viewState */
  constructor(viewState) {
    this.viewState = viewState;
    this.watched = viewState.watched;
    /** The error of the last command. @type {import("../vendor/preact.js").Signal<unknown>} */
    this.failure = signal(null);
    /** The result of the last command as text. */
    this.result = signal("");
    /**
     * Nodes that waited at the breakpoint or had passed it.
     * @type {import("../vendor/preact.js").Signal<MissedBreakpoint[]>}
     */
    this.missed = signal([]);
    this.busy = signal(false);
  }

  /**
   * Whether a command is available.
   * @param {AnswerCommand} command @param {Hook | null} hook the selected hook by default
   */
  isAvailable(command, hook = this.viewState.hook.value) {
    if (!hook || this.viewState.past.value || this.watched.gone.value) return false;
    if (!offeredDecisions(hook, session.value).includes(command.decision)) return false;
    if (command.how === "into") return this.#hasNestedStack(hook);
    if (command.how === "out") return hook.stack_id !== hook.root_stack_id;
    return true;
  }

  /** @param {AnswerCommand} command @param {Hook | null} hook the selected hook by default */
  async send(command, hook = this.viewState.hook.value) {
    if (!hook || !this.isAvailable(command, hook)) return;
    if (hook.ask !== null) return this.#sendWithData(hook, command);
    await this.#try(async () => {
      const { decision, how } = command;
      const body = { decision, digest: hook.digest, ...(how ? { how } : {}) };
      await call("POST", this.watched.project, `/hooks/${hook.id}/signal`, body);
      this.result.value = `${placeOf(hook)}: ${command.word.toLowerCase()}.`;
    });
    this.watched.rereadHooks();
  }

  /**
   * Sends a command with the data of the answer form, which shows the first missing field.
   * @param {Hook} hook @param {AnswerCommand} command
   */
  async #sendWithData(hook, { decision, how }) {
    this.viewState.selectHook(hook);
    const draft = draftOf(hook);
    if (draft.value.busy) return;
    if (how) change(draft, { how });
    const { project } = this.watched;
    await decide({ project, hook, draft, form: dataFormFor(hook) }, decision);
    this.watched.rereadHooks();
  }

  /** Runs the stack and stops before the operation of a node. @param {GraphNode} node */
  async runTo(node) {
    await this.#try(async () => {
      const body = { resource: this.viewState.relativePath(node) };
      const done = await call("POST", this.watched.project, `${this.watched.path}/run-to`, body);
      this.missed.value = done.too_late;
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
  async toggle(node, side, on) {
    const point = pointOf(node, side, this.viewState);
    const at = node.name ? this.viewState.relativePath(node) : "";
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
  async setBreakpoint(subject, point) {
    await this.#try(() => this.#set(this.viewState.relativePath(subject), point));
    this.watched.rereadBreakpoints();
    this.watched.rereadGraph();
  }

  /** Removes a breakpoint that was set on the live stack. @param {Breakpoint} breakpoint */
  async remove(breakpoint) {
    await this.#try(async () => {
      await call(
        "DELETE",
        this.watched.project,
        `${this.watched.path}/breakpoints/${breakpoint.id}`,
      );
      this.result.value = `Removed the breakpoint at ${breakpoint.at || "the stack"} (${breakpoint.on}).`;
    });
    this.watched.rereadBreakpoints();
    this.watched.rereadGraph();
  }

  /** @param {string} at @param {string} point */
  async #set(at, point) {
    const breakpoints = [at ? `${at}:${point}` : point];
    const path = `${this.watched.path}/breakpoints`;
    const done = await call("POST", this.watched.project, path, { breakpoints });
    this.missed.value = done.too_late;
    this.result.value = `Set a breakpoint at ${at || "the stack"} (${point}).`;
  }

  /** @param {string} at @param {string} point */
  async #clear(at, point) {
    const matching = this.watched.breakpoints.value.filter(
      (breakpoint) => breakpoint.at === at && breakpoint.on === point,
    );
    if (matching.length === 0) {
      const place = `${at || "the stack"} at ${point}`;
      this.result.value = `The breakpoint for ${place} cannot be cleared here. It comes from a wider rule, the template, the environment or the operator.`;
      return;
    }
    for (const item of matching) await this.remove(item);
  }

  /** @param {() => Promise<void>} work */
  async #try(work) {
    if (this.busy.value) return;
    this.busy.value = true;
    this.failure.value = null;
    this.result.value = "";
    this.missed.value = [];
    try {
      await work();
    } catch (error) {
      this.failure.value = error;
    } finally {
      this.busy.value = false;
    }
  }

  /** @param {Hook} hook */
  #hasNestedStack(hook) {
    const node = this.viewState.model.value?.node(this.viewState.keyOf(hook));
    return Boolean(node?.nested_stack_id) || createsNestedStack(node?.type ?? "");
  }
}

/**
 * Whether a resource type creates a nested stack that does not exist yet. Existing nested stacks
 * are known from the graph.
 * @param {string} type
 */
function createsNestedStack(type) {
  return /\.(ya?ml|template|json)$/i.test(type) || /Group$/.test(type);
}

/** "db at pre-create". @param {Hook} hook */
function placeOf(hook) {
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
