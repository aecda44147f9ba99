/** The events around the selected event. */

import { eventText } from "../stack/event_text.js";
import { html } from "../vendor/preact.js";

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
          onClick=${() => seek(count)}>${eventText(event)}</button>
      </li>`;
    })}
  </ol>`;
}
