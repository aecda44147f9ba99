/** The graph as it was: a slider over the events of a traversal. */

import { useKeys } from "../app/keys.js";
import { ask, here } from "../app/route.js";
import { graphModel } from "../graph/model.js";
import { clock } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { ProblemBox } from "../parts/problem.js";
import { inWords, toneOf } from "../stack/words.js";
import { html, useEffect, useMemo, useSignal } from "../vendor/preact.js";
import { AT_MOST, History } from "./history.js";
import { BEATS, marksOf, nextMark, pace } from "./moments.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("../stack/state.js").Looking} Looking */
/** @typedef {import("../stack/shapes.js").Traversal} Traversal */
/** @typedef {import("./moments.js").Mark} Mark */
/** @typedef {{length: number, seek: (count: number) => void}} Playback */

/** The traversal whose events are looked at; 0: none, it is live. */
export function traversalAsked() {
  return Number(here.value.query.get("traversal") ?? "") || 0;
}

/** @param {{looking: Looking}} props */
export function Timeline({ looking }) {
  const number = traversalAsked();
  return html`<${Opened} key=${number} looking=${looking} number=${number} />`;
}

/** What opens it, and closes it. @param {{looking: Looking}} props */
export function TimelineButton({ looking }) {
  const open = traversalAsked() > 0;
  const press = () => {
    const current = looking.watched.traversal.value?.number ?? "";
    ask({ traversal: traversalAsked() ? "" : String(current) });
  };
  useKeys([{ key: "h", does: "the timeline: how it was; and back to live", run: press }]);
  return html`<button class=${open ? "first" : ""} aria-keyshortcuts="h" onClick=${press}
    disabled=${!looking.watched.traversal.value}>
    ${open ? "Back to live" : "Timeline"} <kbd aria-hidden="true">h</kbd>
  </button>`;
}

/** @param {{looking: Looking, number: number}} props */
function Opened({ looking, number }) {
  const { watched } = looking;
  const history = useMemo(() => new History(watched, number), []);
  const playback = useSignal(/** @type {Playback | null} */ (null));
  const at = useSignal(0);
  const wrong = useSignal(/** @type {unknown} */ (null));
  /** @param {number} to */
  const seek = (to) => {
    const length = playback.value?.length ?? 0;
    at.value = Math.max(0, Math.min(to, length));
    playback.value?.seek(at.value);
  };
  async function read() {
    wrong.value = null;
    const which = number === watched.traversal.value?.number ? "" : `&traversal=${number}`;
    try {
      const [document] = await Promise.all([
        watched.get(`/graph?nested=true${which}`),
        history.read(),
      ]);
      if (history.ended) return;
      const model = graphModel(document);
      playback.value = model.playback(history.events.value);
      at.value = playback.value.length;
      looking.past.value = model;
      looking.replay.value = { events: history.events.value, at, seek };
    } catch (error) {
      if (!history.ended) wrong.value = error;
    }
  }
  useEffect(() => {
    read();
    return () => {
      history.close();
      looking.past.value = null;
      looking.replay.value = null;
    };
  }, []);
  const known = new Set(history.events.value.map((one) => one.id));
  const newer = history.whole.value
    ? watched.events.value.filter((one) => !known.has(one.id)).length
    : 0;
  return html`<section class="timeline card" aria-label="Timeline">
    <div class="row">
      <h2>Timeline</h2>
      <${Choice} looking=${looking} number=${number} />
      <span class="timeline-back"><${TimelineButton} looking=${looking} /></span>
      ${
        newer > 0 &&
        number === watched.traversal.value?.number &&
        html`<button onClick=${read}>${newer} happened since: take them in</button>`
      }
    </div>
    <${ProblemBox} error=${wrong.value ?? history.wrong.value} />
    ${!playback.value && !wrong.value && !history.wrong.value && html`<p class="muted">Reading what happened…</p>`}
    ${playback.value && html`<${Slider} events=${history.events.value} at=${at} seek=${seek} />`}
    ${history.events.value.length >= AT_MOST && html`<p class="muted">Only the first ${AT_MOST} events are shown.</p>`}
  </section>`;
}

/** @param {{looking: Looking, number: number}} props */
function Choice({ looking, number }) {
  const { watched } = looking;
  const found = useSignal(/** @type {Traversal[]} */ ([]));
  useEffect(() => {
    let ended = false;
    watched
      .get("/versions")
      .then(({ traversals }) => {
        if (!ended) found.value = traversals;
      })
      // Without them the traversal that is shown is the choice.
      .catch(() => {});
    return () => {
      ended = true;
    };
  }, []);
  return html`<label class="row">Traversal
    <select value=${String(number)} onChange=${(/** @type {Event} */ event) => {
      ask({ traversal: /** @type {HTMLSelectElement} */ (event.currentTarget).value });
    }}>
      ${found.value.length === 0 && html`<option value=${String(number)}>${number}</option>`}
      ${found.value.map(
        (
          one,
        ) => html`<option key=${one.number} value=${String(one.number)} selected=${one.number === number}>
          ${one.number}: ${one.action.toLowerCase()}, ${one.state}</option>`,
      )}
    </select>
  </label>`;
}

/**
 * @param {{events: CloudEvent[], at: import("../vendor/preact.js").Signal<number>,
 *   seek: (to: number) => void}} props
 */
function Slider({ events, at, seek }) {
  const playing = useSignal(false);
  const marks = useMemo(() => marksOf(events), [events]);
  const length = events.length;
  useEffect(() => {
    if (!playing.value) return;
    const timer = setInterval(() => {
      seek(at.value + pace(length));
      if (at.value >= length) playing.value = false;
    }, 1000 / BEATS);
    return () => clearInterval(timer);
  }, [playing.value, length]);
  const event = events[at.value - 1];
  const said = event ? inWords(event) : "before the first event";
  const play = () => {
    if (!playing.value && at.value >= length) seek(0);
    playing.value = !playing.value;
  };
  return html`<div class="timeline-slider">
      <button aria-label=${playing.value ? "Pause" : "Play"} onClick=${play}>${playing.value ? "❙❙" : "▶"}</button>
      <button aria-label="The mark before" title="The mark before" onClick=${() => seek(nextMark(marks, at.value, -1, length))}>|◂</button>
      <button aria-label="One event back" title="One event back" disabled=${at.value === 0} onClick=${() => seek(at.value - 1)}>◂</button>
      <div class="timeline-track">
        <input type="range" min="0" max=${length} step="1" value=${at.value} aria-label="Event"
          aria-valuetext=${`event ${at.value} of ${length}: ${said}`}
          onInput=${(/** @type {Event} */ input) => {
            playing.value = false;
            seek(Number(/** @type {HTMLInputElement} */ (input.currentTarget).value));
          }} />
        <${Marks} marks=${marks} length=${length} />
      </div>
      <button aria-label="One event on" title="One event on" disabled=${at.value === length} onClick=${() => seek(at.value + 1)}>▸</button>
      <button aria-label="The next mark" title="The next mark" onClick=${() => seek(nextMark(marks, at.value, 1, length))}>▸|</button>
    </div>
    <p class="timeline-said row">
      <span class="unbroken">${at.value} of ${length}</span>
      ${event && html`<${Tone} event=${event} />`}
      <strong class="breaks">${said}</strong>
      ${event && html`<time class="muted" dateTime=${event.time}>${clock(event.time)}</time>`}
    </p>`;
}

/** @param {{event: CloudEvent}} props */
function Tone({ event }) {
  const tone = toneOf(event);
  return tone === "other"
    ? null
    : html`<${Badge} state=${tone} word=${tone === "gate" ? "gate" : tone} />`;
}

/** @param {{marks: Mark[], length: number}} props */
function Marks({ marks, length }) {
  return html`<svg class="timeline-marks" viewBox=${`0 0 ${length || 1} 1`} preserveAspectRatio="none" aria-hidden="true">
    ${marks.map(
      (one) =>
        html`<line key=${one.at} data-tone=${one.tone} x1=${one.at} x2=${one.at} y1="0" y2="1" vector-effect="non-scaling-stroke" />`,
    )}
  </svg>`;
}
