/** The rows of the inbox while hooks open and end and the user interacts with the list. */

import { now } from "../api/clock.js";
import { session } from "../api/session.js";
import { stableOrder } from "../parts/stable_rows.js";
import { signal, useEffect, useRef, useSignal, useSignalEffect } from "../vendor/preact.js";
import { keepsVisible } from "./drafts.js";
import { byStack, matchesFilter, shouldGroup } from "./filters.js";
import { byDeadline } from "./hook_cache.js";
import { cachedHook, waiting } from "./waiting.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./filters.js").Filter} Filter */
/** @typedef {import("../vendor/preact.js").Signal<boolean>} Busy */

/** Milliseconds that the row of an ended hook stays at least. */
const ENDED_ROW_TIME = 6000;
/** Milliseconds after a touch during which the list counts as in use. */
const TOUCH_TIME = 20_000;
/** Up to this number of hooks, all rows start expanded. */
const FEW = 3;

/**
 * Whether each row is expanded, by hook ID.
 * @type {Map<string, import("../vendor/preact.js").Signal<boolean>>}
 */
const openByHook = new Map();

/** Whether a row is expanded. @param {string} id */
export function openSignal(id) {
  const existing = openByHook.get(id) ?? signal((waiting.peek()?.length ?? 0) <= FEW);
  openByHook.set(id, existing);
  return existing;
}

/**
 * The rows, by deadline or by stack. held: number of rows held back while the user interacts with
 * the list. show: shows them. clear: removes ended hooks.
 * @param {Filter} filter @param {boolean} grouped @param {Busy} busy
 */
export function useRows(filter, grouped, busy) {
  const rows = useSignal(/** @type {readonly string[]} */ ([]));
  const held = useSignal(0);
  const options = useSignal({ filter, grouped });
  const ended = useRef(/** @type {Map<string, number>} */ (new Map()));
  options.value = useStable({ filter, grouped });
  const last = useRef(options.value);

  /** @param {boolean} still */
  function update(still) {
    const { kept, ends } = endedRows(rows.peek(), ended.current, still);
    const ids = orderedIds([...(waiting.value ?? []), ...kept], options.value);
    const result = stableOrder(rows.peek(), ids, still);
    rows.value = result.rows;
    held.value = result.held;
    // Depend on the clock only while ended rows must be removed later.
    if (ends && !still) void now.value;
  }

  useSignalEffect(() => {
    const changed = options.value !== last.current;
    last.current = options.value;
    update(busy.value && !changed);
  });
  return {
    rows: rows.value,
    held: held.value,
    show: () => update(false),
    clear: () => {
      for (const id of rows.peek())
        if (cachedHook(id)?.state !== "waiting") ended.current.set(id, 0);
      update(false);
    },
  };
}

/**
 * Returns the previous object while its content is equal.
 * @template T @param {T} value @returns {T}
 */
function useStable(value) {
  const kept = useRef(value);
  if (JSON.stringify(kept.current) !== JSON.stringify(value)) kept.current = value;
  return kept.current;
}

/**
 * Rows of ended hooks that stay; ends: whether one of them must be removed later.
 * @param {readonly string[]} rows @param {Map<string, number>} since when each hook ended, in milliseconds since 1970
 * @param {boolean} still
 */
function endedRows(rows, since, still) {
  /** @type {Hook[]} */
  const kept = [];
  let ends = false;
  for (const id of rows) {
    const hook = cachedHook(id);
    if (!hook || hook.state === "waiting") continue;
    const seen = since.get(id) ?? now.peek();
    since.set(id, seen);
    const remains = still || keepsVisible(id) || now.peek() - seen < ENDED_ROW_TIME;
    if (remains) kept.push(hook);
    if (remains && !keepsVisible(id)) ends = true;
  }
  return { kept, ends };
}

/** @param {Hook[]} hooks @param {{filter: Filter, grouped: boolean}} options */
function orderedIds(hooks, { filter, grouped }) {
  const matches = hooks
    .filter((hook) => matchesFilter(hook, filter, session.value))
    .sort(byDeadline);
  const rows = grouped ? byStack(matches).flatMap((group) => group.hooks) : matches;
  return rows.map((row) => row.id);
}

/**
 * Whether to group by stack: as chosen by the user, else if there were many hooks initially.
 * @param {string} choice
 */
export function useGrouped(choice) {
  const atFirst = useRef(/** @type {boolean | null} */ (null));
  if (atFirst.current === null && waiting.value) atFirst.current = shouldGroup(waiting.value);
  return choice === "" ? (atFirst.current ?? false) : choice === "stack";
}

/** Whether the user interacts with an element: pointer over it, recent touch, or focus inside. */
export function useBusy() {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const busy = useSignal(false);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let hovered = false;
    let touched = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const update = () => {
      const focused =
        element.contains(document.activeElement) && document.activeElement !== element;
      const left = touched + TOUCH_TIME - Date.now();
      clearTimeout(timer);
      if (left > 0) timer = setTimeout(update, left);
      busy.value = hovered || focused || left > 0;
    };
    /** @param {PointerEvent} event */
    const pointer = (event) => {
      if (event.pointerType === "touch") touched = Date.now();
      else hovered = event.type !== "pointerleave";
      update();
    };
    // When the focus leaves, the next focused element is known only later.
    const focus = () => setTimeout(update);
    const ending = new AbortController();
    const { signal: until } = ending;
    for (const kind of ["pointerenter", "pointerleave", "pointerdown"])
      element.addEventListener(kind, /** @type {EventListener} */ (pointer), { signal: until });
    for (const kind of ["focusin", "focusout"])
      element.addEventListener(kind, focus, { signal: until });
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, []);
  return { place, busy };
}
