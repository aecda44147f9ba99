/**
 * The timeline: a slider over the events of a traversal that shows the graph at each event, with
 * markers, playback, and a list of the events around the selected one.
 */

import { useKeys } from "../app/keys.js";
import { currentPlace, setQuery } from "../app/route.js";
import { graphModel } from "../graph/model.js";
import { formatTime } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Breakable } from "../parts/breakable.js";
import { ProblemBox } from "../parts/problem.js";
import { eventText, TONE_LABELS, toneOf } from "../stack/event_text.js";
import { html, useEffect, useMemo, useSignal } from "../vendor/preact.js";
import { History, MAX_EVENTS } from "./history.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("../stack/view_state.js").ViewState} ViewState */
/** @typedef {import("../stack/types.js").Traversal} Traversal */
/** @typedef {{length: number, seek: (count: number) => void}} Playback */

/** The traversal shown by the timeline; 0: the timeline is closed. */
export function selectedTraversal() {
  return Number(currentPlace.value.query.get("traversal") ?? "") || 0;
}

/** @param {{viewState: ViewState}} props */
export function Timeline({ viewState }) {
  const number = selectedTraversal();
  return html`<${OpenTimeline} key=${number} viewState=${viewState} number=${number} />`;
}

/** Opens and closes the timeline. @param {{viewState: ViewState}} props */
export function TimelineButton({ viewState }) {
  const open = selectedTraversal() > 0;
  const press = () => {
    const current = viewState.watched.traversal.value?.number ?? "";
    setQuery({ traversal: selectedTraversal() ? "" : String(current) });
  };
  useKeys([{ key: "h", description: "open or close the timeline", run: press }]);
  return html`<button class=${open ? "first" : ""} aria-keyshortcuts="h" onClick=${press}
    disabled=${!viewState.watched.traversal.value}>
    ${open ? "Back to live" : "Timeline"} <kbd aria-hidden="true">h</kbd>
  </button>`;
}

/** @param {{viewState: ViewState, number: number}} props */
function OpenTimeline({ viewState, number }) {
  const { watched } = viewState;
  const history = useMemo(() => new History(watched, number), []);
  const playback = useSignal(/** @type {Playback | null} */ (null));
  const at = useSignal(0);
  const failure = useSignal(/** @type {unknown} */ (null));
  /** @param {number} to */
  const seek = (to) => {
    const length = playback.value?.length ?? 0;
    at.value = Math.max(0, Math.min(to, length));
    playback.value?.seek(at.value);
  };
  async function read() {
    failure.value = null;
    const traversalQuery = number === watched.traversal.value?.number ? "" : `&traversal=${number}`;
    try {
      const [document] = await Promise.all([
        watched.get(`/graph?nested=true${traversalQuery}`),
        history.read(),
      ]);
      if (history.ended) return;
      const model = graphModel(document);
      playback.value = model.playback(history.events.value);
      at.value = playback.value.length;
      viewState.past.value = model;
      viewState.replay.value = { events: history.events.value, at, seek };
    } catch (error) {
      if (!history.ended) failure.value = error;
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
  const known = new Set(history.events.value.map((event) => event.id));
  const newer = history.whole.value
    ? watched.events.value.filter((event) => !known.has(event.id)).length
    : 0;
  return html`<section class="timeline card" aria-label="Timeline">
    <div class="row">
      <h2>Timeline</h2>
      <${TraversalSelect} viewState=${viewState} number=${number} />
      <span class="timeline-back"><${TimelineButton} viewState=${viewState} /></span>
      ${
        newer > 0 &&
        number === watched.traversal.value?.number &&
        html`<button onClick=${read}>Load ${newer} new ${newer === 1 ? "event" : "events"}</button>`
      }
    </div>
    <${ProblemBox} error=${failure.value ?? history.failure.value} />
    ${!playback.value && !failure.value && !history.failure.value && html`<p class="muted">Loading events…</p>`}
    ${playback.value && html`<${Slider} events=${history.events.value} at=${at} seek=${seek} />`}
    ${history.events.value.length >= MAX_EVENTS && html`<p class="muted">Only the first ${MAX_EVENTS} events are shown.</p>`}
  </section>`;
}

/** @param {{viewState: ViewState, number: number}} props */
function TraversalSelect({ viewState, number }) {
  const { watched } = viewState;
  const data = useSignal(/** @type {Traversal[]} */ ([]));
  useEffect(() => {
    let ended = false;
    watched
      .get("/versions")
      .then(({ traversals }) => {
        if (!ended) data.value = traversals;
      })
      // Without the list, only the current choice is available.
      .catch(() => {});
    return () => {
      ended = true;
    };
  }, []);
  return html`<label class="row">Traversal
    <select value=${String(number)} onChange=${(/** @type {Event} */ event) => {
      setQuery({ traversal: /** @type {HTMLSelectElement} */ (event.currentTarget).value });
    }}>
      ${data.value.length === 0 && html`<option value=${String(number)}>${number}</option>`}
      ${data.value.map(
        (
          item,
        ) => html`<option key=${item.number} value=${String(item.number)} selected=${item.number === number}>
          ${item.number}: ${item.action.toLowerCase()}, ${item.state}</option>`,
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
    <p class="timeline-event row">
      <span class="unbroken">${at.value} of ${length}</span>
      ${event && html`<${Tone} event=${event} />`}
      <strong class="breaks">${text}</strong>
      ${event && html`<time class="muted" dateTime=${event.time}>${formatTime(event.time)}</time>`}
    </p>`;
}

/** @param {{event: CloudEvent}} props */
function Tone({ event }) {
  const tone = toneOf(event);
  return tone === "other" ? null : html`<${Badge} state=${tone} word=${TONE_LABELS[tone]} />`;
}

/** @param {{marks: Marker[], length: number}} props */
function Markers({ marks, length }) {
  return html`<svg class="timeline-marks" viewBox=${`0 0 ${length || 1} 1`} preserveAspectRatio="none" aria-hidden="true">
    ${marks.map(
      (mark) =>
        html`<line key=${mark.at} data-tone=${mark.tone} x1=${mark.at} x2=${mark.at} y1="0" y2="1" vector-effect="non-scaling-stroke" />`,
    )}
  </svg>`;
}

/** @typedef {import("../stack/view_state.js").Replay} Replay */

/** Number of events on each side. */
const AROUND = 12;

/** @param {{replay: Replay}} props */
export function EventList({ replay }) {
  const { events, at, seek } = replay;
  const first = Math.max(0, at.value - AROUND);
  const shown = events.slice(first, at.value + AROUND);
  return html`<ol class="stack-list timeline-moments" start=${first + 1}>
    ${shown.map((event, index) => {
      const count = first + index + 1;
      return html`<li key=${event.id} data-to-come=${count > at.value}>
        <button class="plain stack-sentence breaks" aria-current=${count === at.value ? "true" : undefined}
          onClick=${() => seek(count)}><span><${Breakable} text=${eventText(event)} /></span></button>
      </li>`;
    })}
  </ol>`;
}

/** @typedef {{at: number, tone: string}} Marker at: number of the event, from 1 */

/** Event tones that get a marker. @type {ReadonlySet<string>} */
const MARKED = new Set(["gate", "failed", "stopped"]);

/**
 * The events at which a node waited for approval, failed or was stopped.
 * @param {readonly CloudEvent[]} events @returns {Marker[]}
 */
function markersOf(events) {
  return events
    .map((event, index) => ({ at: index + 1, tone: toneOf(event) }))
    .filter((item) => MARKED.has(item.tone));
}

/**
 * The next marker in a direction, or the end of the timeline.
 * @param {readonly Marker[]} marks @param {number} at @param {1 | -1} by @param {number} length
 */
function nextMarker(marks, at, by, length) {
  if (by > 0) return marks.find((mark) => mark.at > at)?.at ?? length;
  return marks.findLast((mark) => mark.at < at)?.at ?? 0;
}

/** Playback steps per second. */
const STEPS_PER_SECOND = 4;
/** Maximum duration of the playback in seconds. */
const MAX_SECONDS = 30;

/** Events per playback step. @param {number} length */
function pace(length) {
  return Math.max(1, Math.ceil(length / (STEPS_PER_SECOND * MAX_SECONDS)));
}
