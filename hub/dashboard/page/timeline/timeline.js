/** The timeline: a slider over the events of a traversal that shows the graph at each event. */

import { useKeys } from "../app/keys.js";
import { ask, here } from "../app/route.js";
import { graphModel } from "../graph/model.js";
import { clock } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { ProblemBox } from "../parts/problem.js";
import { eventText, toneOf } from "../stack/event_text.js";
import { html, useEffect, useMemo, useSignal } from "../vendor/preact.js";
import { AT_MOST, History } from "./history.js";
import { markersOf, nextMarker, pace, STEPS_PER_SECOND } from "./markers.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("../stack/view_state.js").ViewState} ViewState */
/** @typedef {import("../stack/types.js").Traversal} Traversal */
/** @typedef {import("./markers.js").Marker} Marker */
/** @typedef {{length: number, seek: (count: number) => void}} Playback */

/** The traversal shown by the timeline; 0: the timeline is closed. */
export function selectedTraversal() {
  return Number(here.value.query.get("traversal") ?? "") || 0;
}

/** @param {{viewState: ViewState}} props */
export function Timeline({ viewState }) {
  const number = selectedTraversal();
  return html`<${Opened} key=${number} viewState=${viewState} number=${number} />`;
}

/** Opens and closes the timeline. @param {{viewState: ViewState}} props */
export function TimelineButton({ viewState }) {
  const open = selectedTraversal() > 0;
  const press = () => {
    const current = viewState.watched.traversal.value?.number ?? "";
    ask({ traversal: selectedTraversal() ? "" : String(current) });
  };
  useKeys([{ key: "h", does: "open or close the timeline", run: press }]);
  return html`<button class=${open ? "first" : ""} aria-keyshortcuts="h" onClick=${press}
    disabled=${!viewState.watched.traversal.value}>
    ${open ? "Back to live" : "Timeline"} <kbd aria-hidden="true">h</kbd>
  </button>`;
}

/** @param {{viewState: ViewState, number: number}} props */
function Opened({ viewState, number }) {
  const { watched } = viewState;
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
      viewState.past.value = model;
      viewState.replay.value = { events: history.events.value, at, seek };
    } catch (error) {
      if (!history.ended) wrong.value = error;
    }
  }
  useEffect(() => {
    read();
    return () => {
      history.close();
      viewState.past.value = null;
      viewState.replay.value = null;
    };
  }, []);
  const known = new Set(history.events.value.map((one) => one.id));
  const newer = history.whole.value
    ? watched.events.value.filter((one) => !known.has(one.id)).length
    : 0;
  return html`<section class="timeline card" aria-label="Timeline">
    <div class="row">
      <h2>Timeline</h2>
      <${Choice} viewState=${viewState} number=${number} />
      <span class="timeline-back"><${TimelineButton} viewState=${viewState} /></span>
      ${
        newer > 0 &&
        number === watched.traversal.value?.number &&
        html`<button onClick=${read}>Load ${newer} new ${newer === 1 ? "event" : "events"}</button>`
      }
    </div>
    <${ProblemBox} error=${wrong.value ?? history.wrong.value} />
    ${!playback.value && !wrong.value && !history.wrong.value && html`<p class="muted">Loading events…</p>`}
    ${playback.value && html`<${Slider} events=${history.events.value} at=${at} seek=${seek} />`}
    ${history.events.value.length >= AT_MOST && html`<p class="muted">Only the first ${AT_MOST} events are shown.</p>`}
  </section>`;
}

/** @param {{viewState: ViewState, number: number}} props */
function Choice({ viewState, number }) {
  const { watched } = viewState;
  const found = useSignal(/** @type {Traversal[]} */ ([]));
  useEffect(() => {
    let ended = false;
    watched
      .get("/versions")
      .then(({ traversals }) => {
        if (!ended) found.value = traversals;
      })
      // Without the list, only the current choice is available.
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
  const marks = useMemo(() => markersOf(events), [events]);
  const length = events.length;
  useEffect(() => {
    if (!playing.value) return;
    const timer = setInterval(() => {
      seek(at.value + pace(length));
      if (at.value >= length) playing.value = false;
    }, 1000 / STEPS_PER_SECOND);
    return () => clearInterval(timer);
  }, [playing.value, length]);
  const event = events[at.value - 1];
  const text = event ? eventText(event) : "before the first event";
  const play = () => {
    if (!playing.value && at.value >= length) seek(0);
    playing.value = !playing.value;
  };
  return html`<div class="timeline-slider">
      <button aria-label=${playing.value ? "Pause" : "Play"} onClick=${play}>${playing.value ? "❙❙" : "▶"}</button>
      <button aria-label="Previous marker" title="Previous marker" onClick=${() => seek(nextMarker(marks, at.value, -1, length))}>|◂</button>
      <button aria-label="Previous event" title="Previous event" disabled=${at.value === 0} onClick=${() => seek(at.value - 1)}>◂</button>
      <div class="timeline-track">
        <input type="range" min="0" max=${length} step="1" value=${at.value} aria-label="Event"
          aria-valuetext=${`event ${at.value} of ${length}: ${text}`}
          onInput=${(/** @type {Event} */ input) => {
            playing.value = false;
            seek(Number(/** @type {HTMLInputElement} */ (input.currentTarget).value));
          }} />
        <${Markers} marks=${marks} length=${length} />
      </div>
      <button aria-label="Next event" title="Next event" disabled=${at.value === length} onClick=${() => seek(at.value + 1)}>▸</button>
      <button aria-label="Next marker" title="Next marker" onClick=${() => seek(nextMarker(marks, at.value, 1, length))}>▸|</button>
    </div>
    <p class="timeline-said row">
      <span class="unbroken">${at.value} of ${length}</span>
      ${event && html`<${Tone} event=${event} />`}
      <strong class="breaks">${text}</strong>
      ${event && html`<time class="muted" dateTime=${event.time}>${clock(event.time)}</time>`}
    </p>`;
}

/** @param {{event: CloudEvent}} props */
function Tone({ event }) {
  const tone = toneOf(event);
  return tone === "other"
    ? null
    : html`<${Badge} state=${tone} word=${tone === "gate" ? "waiting" : tone} />`;
}

/** @param {{marks: Marker[], length: number}} props */
function Markers({ marks, length }) {
  return html`<svg class="timeline-marks" viewBox=${`0 0 ${length || 1} 1`} preserveAspectRatio="none" aria-hidden="true">
    ${marks.map(
      (one) =>
        html`<line key=${one.at} data-tone=${one.tone} x1=${one.at} x2=${one.at} y1="0" y2="1" vector-effect="non-scaling-stroke" />`,
    )}
  </svg>`;
}
