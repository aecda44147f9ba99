/** A plan: breakpoints, planned changes and adopted values. */

import { Ago, formatDuration } from "../parts/ago.js";
import { Changes } from "../parts/changes.js";
import { Icon } from "../parts/icon.js";
import { html } from "../vendor/preact.js";
import { changesOf, depth, uncertainty } from "./plan.js";

/**
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./draft.js").Draft} Draft
 */

/** Rows of a kind shown without expanding. */
const MANY = 60;

/**
 * draft: whose breakpoints the user can choose; null: the plan is only shown. note: more about the
 * resource at a path.
 * @param {{plan: Plan, draft: Draft | null, note?: (path: string) => unknown}} props
 */
export function PlanDetails({ plan, draft, note }) {
  return html`<${Stops} plan=${plan} draft=${draft} />
    ${plan.groups.map((group) => html`<${Group} key=${group.kind} group=${group} draft=${draft} note=${note} />`)}
    ${
      plan.outOfDate.length > 0 &&
      html`<p>Out of date (this partial update does not change them):
        <span class="breaks"> ${plan.outOfDate.join(", ")}</span></p>`
    }
    <${UnknownStates} states=${plan.unknownStates} />
    <${AdoptedValues} adopted=${plan.adopted} />`;
}

/** @param {{states: Plan["unknownStates"]}} props */
function UnknownStates({ states }) {
  if (states.length === 0) return null;
  return html`<section aria-label="Not repaired">
    <h3>Not repaired, because the state is unknown <span class="muted">${states.length}</span></h3>
    <ul>${states.map(
      ({
        path,
        reason,
        last_known_state,
      }) => html`<li key=${path} class="breaks"><code>${path}</code>
        ${" "}<span class="muted">${last_known_state && `last known: ${last_known_state}; `}${reason}</span></li>`,
    )}</ul>
  </section>`;
}

/** @param {{adopted: Plan["adopted"]}} props */
function AdoptedValues({ adopted }) {
  if (adopted.length === 0) return null;
  return html`<section aria-label="Adopted values">
    <h3>Adopted values <span class="muted">${adopted.length}</span></h3>
    <ul>${adopted.map(
      ({
        name,
        value,
      }) => html`<li key=${name} class="breaks"><code>${name}: ${JSON.stringify(value.value)}</code>
        ${" "}<span class="muted">adopted by ${value.adopted_by} <${Ago} at=${value.adopted_at} />; the template says
        ${" "}<code>${JSON.stringify(value.template)}</code></span></li>`,
    )}</ul>
  </section>`;
}

/** @param {{group: import("./plan.js").Group, draft: Draft | null, note?: (path: string) => unknown}} props */
function Group({ group, draft, note }) {
  const { kind, title, resources } = group;
  return html`<section class="edit-group" data-kind=${kind} aria-label=${kind === "uncertain" ? "Resources that may change" : `${title} resources`}>
    <h3>${title} <span class="muted">${resources.length}</span></h3>
    <ul>
      ${resources
        .slice(0, MANY)
        .map(
          (resource) =>
            html`<${Resource} key=${resource.path} kind=${kind} resource=${resource} draft=${draft} note=${note} />`,
        )}
    </ul>
    ${
      resources.length > MANY &&
      html`<details>
        <summary>${resources.length - MANY} more</summary>
        <ul class="breaks">${resources.slice(MANY).map((resource) => html`<li key=${resource.path}><code>${resource.path}</code></li>`)}</ul>
      </details>`
    }
  </section>`;
}

/** Operation of each kind of change that is expected. @type {Record<string, string>} */
const OPERATION = { deleted: "delete", replaced: "replace", updated: "update", added: "create" };

/**
 * @param {{kind: string, resource: import("./plan.js").Planned, draft: Draft | null,
 *   note?: (path: string) => unknown}} props
 */
function Resource({ kind, resource, draft, note }) {
  const changes = kind === "deleted" ? {} : changesOf(resource);
  const left = uncertainty(kind, resource);
  const count = Object.keys(changes).length;
  return html`<li class="edit-resource" data-depth=${Math.min(depth(resource), 5)}>
    <div class="row">
      <code class="breaks name">${resource.path}</code>
      <span class="muted breaks">${resource.resource_type}</span>
      ${draft && OPERATION[kind] && html`<${StopHere} place=${resource.path} operation=${OPERATION[kind]} draft=${draft} />`}
    </div>
    ${left && html`<p class=${resource.denied ? "wrong" : "uncertain"}>${resource.denied ? "Forbidden: " : ""}${left}</p>`}
    ${note?.(resource.path)}
    ${resource.moved_from && html`<p class="muted breaks">Moved from ${resource.moved_from}</p>`}
    ${resource.imported_id && html`<p class="muted breaks">Imported: ${resource.imported_id}</p>`}
    ${resource.replace_reason && html`<p class="muted breaks">${resource.replace_reason}</p>`}
    ${
      count > 0 &&
      (kind === "added"
        ? html`<details><summary>${count === 1 ? "1 property" : `${count} properties`}</summary><${Changes} changes=${changes} /></details>`
        : html`<${Changes} changes=${changes} />`)
    }
  </li>`;
}

/** @param {{place: string, operation: string | undefined, draft: Draft}} props */
function StopHere({ place, operation, draft }) {
  const rule = `${place}:pre-${operation}`;
  const { add } = draft.options.value;
  const set = add.includes(rule);
  return html`<button class="plain stop-here" aria-pressed=${set ? "true" : "false"}
    aria-label=${`Stop before ${place}`} title=${`Breakpoint for this change: ${rule}`}
    onClick=${() => draft.choose({ add: set ? add.filter((other) => other !== rule) : [...add, rule] })}>
    <${Icon} name="gate" />
  </button>`;
}

/** @param {{plan: Plan, draft: Draft | null}} props */
function Stops({ plan, draft }) {
  const clear = draft ? draft.options.value.clear : [];
  if (plan.stops.length === 0 && clear.length === 0)
    return html`<p class="muted">No breakpoints.</p>`;
  return html`<section class="edit-stops" aria-labelledby="stops">
    <h3 id="stops">Breakpoints <span class="muted">${plan.stops.length}</span></h3>
    <ol>
      ${plan.stops.map(
        (stop, index) =>
          html`<${Stop} key=${`${index} ${stop.path}:${stop.point}`} stop=${stop} draft=${draft} />`,
      )}
    </ol>
    ${clear.map(
      (rule) => html`<p key=${rule} class="row muted">Skipped: <code class="breaks">${rule}</code>
        <button class="plain" onClick=${() => draft?.choose({ clear: clear.filter((item) => item !== rule) })}>Restore</button></p>`,
    )}
  </section>`;
}

/** Rule modes as text. @type {Record<string, string>} */
const MODES = {
  wait: "waits for approval",
  notify: "notifies and continues",
  stop: "stops the stack",
};
/** @type {Record<string, string>} */
const DEADLINE_TEXTS = {
  stop: "the stack stops",
  continue: "the change continues",
  reject: "the operation is rejected",
};

/** @param {{stop: import("./plan.js").Stop, draft: Draft | null}} props */
function Stop({ stop, draft }) {
  return html`<li>
    <div class="row">
      <span class="tone-gate"><${Icon} name="gate" /></span>
      <strong class="breaks">${stop.point}${stop.path && html` <code>${stop.path}</code>`}</strong>
      <span>${MODES[stop.mode] ?? stop.mode}${stop.certain ? "" : " (possibly)"}</span>
      ${draft && html`<${Skip} rule=${`${stop.path}:${stop.point}`} draft=${draft} />`}
    </div>
    ${
      stop.mode === "wait" &&
      html`<p class="muted breaks">
        ${stop.approvals > 1 ? `${stop.approvals} approvals from` : "Approval from"} ${stop.answer_by.join(" or ")}.
        ${stop.timeout_seconds === null ? " After the default timeout" : ` After ${formatDuration(stop.timeout_seconds)}`}
        ${` ${DEADLINE_TEXTS[stop.on_timeout] ?? stop.on_timeout}.`}
      </p>`
    }
  </li>`;
}

/** @param {{rule: string, draft: Draft}} props */
function Skip({ rule, draft }) {
  const { add, clear } = draft.options.value;
  const leaveOut = () =>
    add.includes(rule)
      ? draft.choose({ add: add.filter((other) => other !== rule) })
      : draft.choose({ clear: [...clear, rule] });
  return html`<button class="plain" aria-label=${`Skip ${rule}`} onClick=${leaveOut}>Skip</button>`;
}
