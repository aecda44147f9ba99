/** Which rows the inbox shows, while hooks come and go and somebody is at the list. */

import { now } from "../api/clock.js";
import { session } from "../api/session.js";
import { steady } from "../parts/steady.js";
import { signal, useEffect, useRef, useSignal, useSignalEffect } from "../vendor/preact.js";
import { holds } from "./drafts.js";
import { areMany, byStack, fits } from "./filters.js";
import { byAge } from "./known.js";
import { hookOf, waiting } from "./waiting.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./filters.js").Filter} Filter */
/** @typedef {import("../vendor/preact.js").Signal<boolean>} Busy */

/** Milliseconds that a row stays, at least, when its hook has ended. */
const STAYS = 6000;
/** Milliseconds that a finger is taken to be at the list after it touched it. */
const TOUCHED = 20_000;
/** So many are opened without being asked. */
const FEW = 3;

/** Rows that are open, or were closed, by the id of the hook. @type {Map<string, import("../vendor/preact.js").Signal<boolean>>} */
const opened = new Map();

/** Whether a row is open. @param {string} id */
export function openOf(id) {
  const found = opened.get(id) ?? signal((waiting.peek()?.length ?? 0) <= FEW);
  opened.set(id, found);
  return found;
}

/**
 * The rows, oldest first, or by stack; held: those that are held back while somebody is at the list;
 * show: show them now; clear: take away those that ended.
 * @param {Filter} filter @param {boolean} grouped @param {Busy} busy
 */
export function useRows(filter, grouped, busy) {
  const rows = useSignal(/** @type {readonly string[]} */ ([]));
  const held = useSignal(0);
  const asked = useSignal({ filter, grouped });
  const ended = useRef(/** @type {Map<string, number>} */ (new Map()));
  asked.value = useStable({ filter, grouped });
  const last = useRef(asked.value);

  /** @param {boolean} still */
  function look(still) {
    const { kept, ends } = endedRows(rows.peek(), ended.current, still);
    const wanted = ordered([...(waiting.value ?? []), ...kept], asked.value);
    const found = steady(rows.peek(), wanted, still);
    rows.value = found.rows;
    held.value = found.held;
    // Time goes on for those that ended; otherwise nobody needs to look each second.
    if (ends && !still) void now.value;
  }

  useSignalEffect(() => {
    const changed = asked.value !== last.current;
    last.current = asked.value;
    look(busy.value && !changed);
  });
  return {
    rows: rows.value,
    held: held.value,
    show: () => look(false),
    clear: () => {
      for (const id of rows.peek()) if (hookOf(id)?.state !== "waiting") ended.current.set(id, 0);
      look(false);
    },
  };
}

/** The same object for as long as it says the same. @template T @param {T} said @returns {T} */
function useStable(said) {
  const kept = useRef(said);
  if (JSON.stringify(kept.current) !== JSON.stringify(said)) kept.current = said;
  return kept.current;
}

/**
 * Those among the rows whose hook has ended, as far as they stay; ends: whether time takes one away.
 * @param {readonly string[]} rows @param {Map<string, number>} since when each was seen to have ended
 * @param {boolean} still
 */
function endedRows(rows, since, still) {
  /** @type {Hook[]} */
  const kept = [];
  let ends = false;
  for (const id of rows) {
    const hook = hookOf(id);
    if (!hook || hook.state === "waiting") continue;
    const seen = since.get(id) ?? now.peek();
    since.set(id, seen);
    const stays = still || holds(id) || now.peek() - seen < STAYS;
    if (stays) kept.push(hook);
    if (stays && !holds(id)) ends = true;
  }
  return { kept, ends };
}

/** @param {Hook[]} hooks @param {{filter: Filter, grouped: boolean}} asked */
function ordered(hooks, { filter, grouped }) {
  const found = hooks.filter((one) => fits(one, filter, session.value)).sort(byAge);
  const rows = grouped ? byStack(found).flatMap((group) => group.hooks) : found;
  return rows.map((one) => one.id);
}

/** Grouped by stack, when there were many at first, and nobody said otherwise. @param {string} said */
export function useGrouped(said) {
  const atFirst = useRef(/** @type {boolean | null} */ (null));
  if (atFirst.current === null && waiting.value) atFirst.current = areMany(waiting.value);
  return said === "" ? (atFirst.current ?? false) : said === "stack";
}

/** Whether somebody is at an element: a pointer over it, a finger a moment ago, or the focus in it. */
export function useAtIt() {
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
    // When the focus leaves, what has it next is known a moment later.
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
