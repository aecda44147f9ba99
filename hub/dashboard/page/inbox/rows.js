/** The rows of the inbox while hooks open and end and the user interacts with the list. */

import { now } from "../api/clock.js";
import { session } from "../api/session.js";
import { stableOrder } from "../parts/stable_rows.js";
import { signal, useEffect, useRef, useSignal, useSignalEffect } from "../vendor/preact.js";
import { keepsVisible } from "./drafts.js";
import { byStack, fits, shouldGroup } from "./filters.js";
import { byAge } from "./hook_cache.js";
import { cachedHook, waiting } from "./waiting.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./filters.js").Filter} Filter */
/** @typedef {import("../vendor/preact.js").Signal<boolean>} Busy */

/** Milliseconds that the row of an ended hook stays at least. */
const STAYS = 6000;
/** Milliseconds after a touch during which the list counts as in use. */
const TOUCHED = 20_000;
/** Up to this number of hooks, all rows start expanded. */
const FEW = 3;

/**
 * Whether each row is expanded, by hook ID.
 * @type {Map<string, import("../vendor/preact.js").Signal<boolean>>}
 */
const opened = new Map();

/** Whether a row is expanded. @param {string} id */
export function openOf(id) {
  const found = opened.get(id) ?? signal((waiting.peek()?.length ?? 0) <= FEW);
  opened.set(id, found);
  return found;
}

/**
 * The rows, oldest first or by stack. held: number of rows held back while the user interacts with
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
  function look(still) {
    const { kept, ends } = endedRows(rows.peek(), ended.current, still);
    const wanted = ordered([...(waiting.value ?? []), ...kept], options.value);
    const found = stableOrder(rows.peek(), wanted, still);
    rows.value = found.rows;
    held.value = found.held;
    // Depend on the clock only while ended rows must be removed later.
    if (ends && !still) void now.value;
  }

  useSignalEffect(() => {
    const changed = options.value !== last.current;
    last.current = options.value;
    look(busy.value && !changed);
  });
  return {
    rows: rows.value,
    held: held.value,
    show: () => look(false),
    clear: () => {
      for (const id of rows.peek())
        if (cachedHook(id)?.state !== "waiting") ended.current.set(id, 0);
      look(false);
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
    const stays = still || keepsVisible(id) || now.peek() - seen < STAYS;
    if (stays) kept.push(hook);
    if (stays && !keepsVisible(id)) ends = true;
  }
  return { kept, ends };
}

/** @param {Hook[]} hooks @param {{filter: Filter, grouped: boolean}} options */
function ordered(hooks, { filter, grouped }) {
  const found = hooks.filter((one) => fits(one, filter, session.value)).sort(byAge);
  const rows = grouped ? byStack(found).flatMap((group) => group.hooks) : found;
  return rows.map((one) => one.id);
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
export function useInUse() {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const busy = useSignal(false);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let over = false;
    let touched = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const look = () => {
      const focused =
        element.contains(document.activeElement) && document.activeElement !== element;
      const left = touched + TOUCHED - Date.now();
      clearTimeout(timer);
      if (left > 0) timer = setTimeout(look, left);
      busy.value = over || focused || left > 0;
    };
    /** @param {PointerEvent} event */
    const pointer = (event) => {
      if (event.pointerType === "touch") touched = Date.now();
      else over = event.type !== "pointerleave";
      look();
    };
    // When the focus leaves, the next focused element is known only later.
    const focus = () => setTimeout(look);
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
