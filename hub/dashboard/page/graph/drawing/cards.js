// Elements of near nodes, with details and breakpoint toggles.
import { ORDER } from "../fold/tally.js";
import {
  groupTitle,
  label,
  nameOf,
  operationOf,
  SHORT_WORDS,
  shortType,
  WORDS,
} from "../labels.js";
import { element, icon, put } from "./element.js";
import { canSetBreakpoint, SIDES, sideOf } from "./sides.js";

/**
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("../fold/tally.js").Tally} Tally
 * @typedef {import("../fold/tally.js").Sign} Sign
 * @typedef {import("../types.js").GraphNode} GraphNode
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {import("../types.js").Shown} Shown
 *
 * @typedef {object} CardState what a card shows
 * @property {Progress | null} progress of its node
 * @property {Shown} state
 * @property {Tally} tally of its group or nested stack
 * @property {boolean} selected
 * @property {boolean} critical
 * @property {boolean} faint it does not match the search
 * @property {boolean} editable
 * @property {string | null} drift the observed state of its resource, if it is drift
 */

export class Card {
  /** @param {Spot} spot */
  constructor(spot) {
    this.spot = spot;
    const { item } = spot;
    this.root = element("div", "graph-node");
    this.root.dataset.key = spot.key;
    this.root.dataset.kind = item.kind;
    if (item.view) this.root.dataset.open = "";
    if (item.node?.direction === "cleanup") this.root.dataset.cleanup = "";
    Object.assign(this.root.style, {
      width: `${spot.width}px`,
      height: `${spot.height}px`,
      transform: `translate(${spot.x}px, ${spot.y}px)`,
    });
    this.face = element("button", "graph-face");
    this.face.tabIndex = -1;
    this.face.dataset.action = item.kind === "group" ? "fold" : "select";
    this.glyph = icon("waiting");
    this.name = element("span", "graph-name");
    this.detail = element("span", "graph-detail");
    this.word = element("span", "graph-word");
    this.drift = element("span", "graph-drift");
    this.drift.hidden = true;
    // Screen readers get one sentence instead of these parts.
    this.description = element("span", "only-read");
    for (const item of [this.name, this.detail, this.word, this.drift])
      item.setAttribute("aria-hidden", "true");
    this.face.append(this.glyph, this.name, this.word, this.detail, this.drift, this.description);
    this.root.append(this.face);
    /** @type {Partial<Record<"pre" | "post", HTMLElement>>} */
    this.sides = {};
    if (item.node) {
      for (const side of SIDES) {
        const made = element("button", `graph-side graph-${side}`);
        made.tabIndex = -1;
        made.dataset.action = side;
        this.sides[side] = made;
        this.root.append(made);
      }
    }
    if (item.opens) {
      this.bar = element("span", "graph-bar");
      this.bar.setAttribute("aria-hidden", "true");
      this.face.append(this.bar);
      if (item.node) this.root.append(this.#folder(item.node));
    }
  }

  /** @param {GraphNode} node */
  #folder(node) {
    const open = this.spot.item.view !== null;
    const made = element("button", "graph-fold");
    made.tabIndex = -1;
    made.dataset.action = "fold";
    made.textContent = open ? "−" : "+";
    made.setAttribute("aria-expanded", String(open));
    made.setAttribute("aria-label", `Nested stack of ${nameOf(node)}`);
    return made;
  }

  /** @param {CardState} reported */
  show(reported) {
    const { root, spot } = this;
    root.dataset.state = reported.state;
    root.toggleAttribute("data-selected", reported.selected);
    root.toggleAttribute("data-critical", reported.critical);
    root.toggleAttribute("data-faint", reported.faint);
    put(this.glyph, reported.state);
    if (this.bar) showBar(this.bar, reported.tally);
    if (spot.item.node && reported.progress)
      this.#showNode(spot.item.node, reported.progress, reported);
    else this.#showGroup(reported);
  }

  /**
   * @param {GraphNode} node
   * @param {Progress} progress
   * @param {CardState} reported
   */
  #showNode(node, progress, reported) {
    const { state, tally, editable, drift } = reported;
    const sign = tally.sign && this.spot.item.opens ? tally.sign : null;
    text(this.name, nameOf(node));
    const kind = node.direction === "cleanup" ? "cleanup" : shortType(node.type);
    const done = operationOf(node, progress);
    text(this.detail, node.name ? `${kind} · ${done}` : done);
    text(this.word, sign ? `${tally.counts[sign]} ${WORDS[sign]}` : wordOf(state, progress));
    this.root.toggleAttribute("data-sign", sign !== null);
    if (sign) this.root.dataset.sign = sign;
    const inside = this.spot.item.opens ? `; nested: ${sentenceOf(tally)}` : "";
    const differs = drift ? `, drift: ${drift}` : "";
    const description = `${label(node, progress)}${differs}${breaksOf(progress)}${inside}`;
    this.drift.hidden = drift === null;
    text(this.drift, drift ? `drift: ${drift}` : "");
    text(this.description, description);
    attribute(this.face, "title", `${node.path || "the stack"}\n${node.type}\n${description}`);
    attribute(this.face, "aria-pressed", String(reported.selected));
    for (const side of SIDES) {
      const made = this.sides[side];
      if (made) showSide(made, node, progress, side, editable);
    }
  }

  /** @param {CardState} reported */
  #showGroup({ tally }) {
    const { item } = this.spot;
    const open = item.view !== null;
    const title = groupTitle(item);
    const sign = tally.sign;
    text(this.name, title);
    text(this.word, sign ? `${tally.counts[sign]} ${SHORT_WORDS[sign]}` : open ? "−" : "+");
    text(this.detail, sentenceOf(tally, sign));
    this.root.toggleAttribute("data-sign", sign !== null);
    if (sign) this.root.dataset.sign = sign;
    attribute(this.face, "aria-expanded", String(open));
    text(this.description, `${title}: ${sentenceOf(tally)}`);
    attribute(this.face, "title", sentenceOf(tally));
  }
}

/**
 * @param {Shown} state
 * @param {Progress} progress
 */
function wordOf(state, progress) {
  return state === "gate" && progress.hook ? progress.hook.point : SHORT_WORDS[state];
}

/** @param {Progress} progress */
function breaksOf({ breakpoints }) {
  return breakpoints.length ? `, breakpoints: ${breakpoints.join(", ")}` : "";
}

/**
 * @param {Tally} tally
 * @param {Shown | null} [without] a state to leave out
 * @returns {string} "3 waiting for approval, 20 done"
 */
function sentenceOf({ counts }, without = null) {
  return ORDER.filter((state) => state !== without && counts[state])
    .map((state) => `${counts[state]} ${WORDS[state]}`)
    .join(", ");
}

/**
 * @param {HTMLElement} bar
 * @param {Tally} tally
 */
function showBar(bar, { counts, all }) {
  const parts = ORDER.filter((state) => counts[state]).map((state) => {
    const part = element("i", "");
    part.dataset.state = state;
    part.style.flexGrow = String(Math.max(counts[state] ?? 0, all / 60));
    return part;
  });
  bar.replaceChildren(...parts);
}

/**
 * @param {HTMLElement} made
 * @param {GraphNode} node
 * @param {Progress} progress
 * @param {"pre" | "post"} side
 * @param {boolean} editable
 */
function showSide(made, node, progress, side, editable) {
  const { set, passed, holds, point } = sideOf(progress, side);
  const may = editable && canSetBreakpoint(node, progress, side);
  made.toggleAttribute("data-set", set);
  made.toggleAttribute("data-passed", set && passed);
  made.toggleAttribute("data-holds", holds);
  made.toggleAttribute("data-may", may);
  made.hidden = !may && !set && !holds;
  made.toggleAttribute("disabled", !may);
  const position = side === "pre" ? "before" : "after";
  attribute(made, "aria-pressed", String(set));
  attribute(made, "aria-label", `Breakpoint ${position} ${nameOf(node)}`);
  const reported = set ? (passed ? "passed" : "set; click to clear") : "click to set";
  attribute(made, "title", `${point}: ${holds ? "waiting here" : reported}`);
}

/**
 * @param {HTMLElement} on
 * @param {string} value
 */
function text(on, value) {
  if (on.textContent !== value) on.textContent = value;
}

/**
 * @param {HTMLElement} on
 * @param {string} name
 * @param {string} value
 */
function attribute(on, name, value) {
  if (on.getAttribute(name) !== value) on.setAttribute(name, value);
}
