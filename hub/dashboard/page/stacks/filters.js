/** The filters of the list, kept in the page address. */

import { setQuery } from "../app/route.js";
import { Icon } from "../parts/icon.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { parseWords, STATUSES, toggleWord } from "./query.js";

/** @typedef {import("./query.js").StackQuery} StackQuery */
/** @typedef {import("./types.js").Counts} Counts */

/** Delay after typing before the filter applies, in milliseconds. */
const TYPING_DELAY = 250;
/** @type {Record<string, string>} */
const SHAPES = { IN_PROGRESS: "running", STOPPED: "stopped", FAILED: "failed", COMPLETE: "done" };

/** Changes the query and returns to the first page. @param {Record<string, string>} changed */
export function setFilters(changed) {
  setQuery({ from: "", ...changed });
}

/** @param {{query: StackQuery, counts: Counts | null}} props */
export function Filters({ query, counts }) {
  const { statuses, waiting, tags, search } = query;
  const any = statuses.length + tags.length > 0 || waiting || search;
  return html`<search class="stacks-filters" aria-label="Stacks">
    <div class="row">
      <${TextFilter} name="search" label="Search by name or ID" value=${search} icon="search" />
      <${TextFilter} name="tags" label="Tags (match all)" value=${tags.join(", ")}
        reads=${(/** @type {string} */ text) => parseWords(text).join(",")} />
    </div>
    <div class="row" role="group" aria-label="Filter by status">
      ${STATUSES.map(
        ([status, word]) => html`<${Chip} key=${status} word=${word} shape=${SHAPES[status]}
          many=${counts?.statuses[status]} on=${statuses.includes(status)}
          press=${() => setFilters({ status: toggleWord(statuses, status).join(",") })} />`,
      )}
      <${Chip} word="Waiting for approval" shape="gate" many=${counts?.waiting} on=${waiting}
        press=${() => setFilters({ waiting: waiting ? "" : "true" })} />
      ${any && html`<button class="plain" onClick=${() => setFilters({ search: "", status: "", waiting: "", tags: "" })}>Clear filters</button>`}
    </div>
  </search>`;
}

/** @param {{word: string, shape: string, many: number | undefined, on: boolean, press: () => void}} props */
function Chip({ word, shape, many, on, press }) {
  return html`<button class="chip badge" data-state=${shape} aria-pressed=${on ? "true" : "false"} onClick=${press}>
    <${Icon} name=${shape} />${word}${many !== undefined && html` <span class="many">${many}</span>`}
  </button>`;
}

/**
 * A text filter that updates the address after a delay.
 * @param {{name: string, label: string, value: string, icon?: string, reads?: (text: string) => string}} props
 */
function TextFilter({ name, label, value, icon, reads = (text) => text.trim() }) {
  const text = useSignal(value);
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  useEffect(() => {
    // Changed by a tag button or a link.
    if (reads(text.value) !== reads(value)) text.value = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  /** @param {any} event */
  function write(event) {
    text.value = event.target.value;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setFilters({ [name]: reads(text.value) }), TYPING_DELAY);
  }
  return html`<label class="stacks-written">
    ${icon && html`<${Icon} name=${icon} />`}<span class="only-read">${label}</span>
    <input type="search" name=${name} placeholder=${label} value=${text.value} onInput=${write} />
  </label>`;
}
