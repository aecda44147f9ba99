/** The form for a new or changed subscription. */

import { call } from "../api/client.js";
import { href, navigate } from "../app/route.js";
import { SecretDialog } from "../parts/copy.js";
import { Field } from "../parts/field.js";
import { asProblem, FieldErrorHelp, ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { FILTERS, findingsByField, QUIET_CHANNELS, requestBody } from "./filters.js";

/** @typedef {import("./types.js").Subscription} Subscription */

/** Channel and the meaning of its target. @type {Record<string, string>} */
const CHANNELS = {
  webhook: "URL that receives events by HTTP POST, for example https://gate.example/hook.",
  amqp: "Exchange on the server's RabbitMQ.",
  slack: "URL of an incoming webhook of Slack, or of a chat that accepts the same messages.",
  teams: "URL of a workflow of Microsoft Teams that posts to a channel.",
  email: "E-mail address, if the operator allows it.",
  heat: "Exchange on which OpenStack services listen for notifications.",
};
/** Channels whose receivers verify signatures. */
const SIGNED = new Set(["webhook", "amqp"]);
const FIELDS = ["channel", "target", "quiet_hours", "digest", ...FILTERS.map(([filter]) => filter)];

/** @param {{project: string}} props */
export function NewSubscription({ project }) {
  const made = useSignal(/** @type {(Subscription & {secret: string}) | null} */ (null));
  const channel = useSignal("webhook");
  /** @param {Record<string, unknown>} body */
  async function send(body) {
    made.value = await call("POST", project, "/subscriptions", { channel: channel.value, ...body });
  }
  return html`<h1>New subscription</h1>
    <${Form} channel=${channel.value} hint=${CHANNELS[channel.value]} word="Create subscription" send=${send}
      leave=${() => navigate(href(project, "subscriptions"))}>
      ${(
        /** @type {string | undefined} */ failure,
      ) => html`<${Field} label="Channel" error=${failure}>
        ${(/** @type {object} */ needs) => html`<select value=${channel.value} ...${needs}
          onChange=${(/** @type {any} */ event) => {
            channel.value = event.target.value;
          }}>
          ${Object.keys(CHANNELS).map((key) => html`<option key=${key}>${key}</option>`)}
        </select>`}
      <//>`}
    <//>
    ${
      made.value &&
      html`<${SecretDialog} title="Subscription created" what="the secret" text=${made.value.secret}
        onClose=${() => made.value && navigate(href(project, "subscriptions", made.value.id))}>
        ${SIGNED.has(made.value.channel) ? "Deliveries are signed with this secret. Configure it in the receiver to verify them." : "Messages of this channel are not signed: you do not need the secret."}
      <//>`
    }`;
}

/** @param {{project: string, subscription: Subscription, done: (now?: Subscription) => void}} props */
export function ChangeForm({ project, subscription, done }) {
  return html`<${Form} subscription=${subscription} channel=${subscription.channel} hint=${CHANNELS[subscription.channel]} word="Save" leave=${() => done()}
    send=${async (/** @type {object} */ body) => done(await call("PATCH", project, `/subscriptions/${subscription.id}`, body))} />`;
}

/**
 * children: receives the error of the channel field.
 * @param {{subscription?: Subscription, channel: string, hint: string | undefined, word: string, leave: () => void,
 *   send: (body: Record<string, unknown>) => Promise<void>,
 *   children?: (failure: string | undefined) => unknown}} props
 */
function Form({ subscription, channel, hint, word, leave, send, children }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    busy.value = true;
    failure.value = null;
    try {
      const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
      await send(requestBody(form, channel));
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }
  const { byField, rest, ofFields } = splitError(failure.value);
  return html`<form class="card subscriptions-form" onSubmit=${submit}>
    ${children?.(byField.channel)}
    <${Field} label="Target" hint=${hint ?? ""} error=${byField.target}>
      ${(
        /** @type {object} */ needs,
      ) => html`<input name="target" required autocomplete="off" inputmode="url"
        defaultValue=${subscription?.target ?? ""} ...${needs} />`}
    <//>
    <fieldset class="subscriptions-filters">
      <legend>Filters</legend>
      <p class="hint muted">Glob patterns separated by spaces. An empty field matches everything.</p>
      ${FILTERS.map(
        ([
          filter,
          label,
          on,
          example,
        ]) => html`<${Field} key=${filter} label=${label} hint=${`${on}, for example ${example}`} error=${byField[filter]}>
          ${(
            /** @type {object} */ needs,
          ) => html`<input class="code" name=${filter} autocomplete="off" spellcheck=${false}
            defaultValue=${subscription?.[filter].join(" ") ?? ""} ...${needs} />`}
        <//>`,
      )}
    </fieldset>
    <label class="row"><input type="checkbox" name="nested" defaultChecked=${subscription?.nested ?? true} />
      Include events of nested stacks</label>
    <label class="row"><input type="checkbox" name="ordered" defaultChecked=${subscription?.ordered ?? true} />
      Deliver the events of each stack in order (each waits for the one before it)</label>
    ${
      QUIET_CHANNELS.has(channel) &&
      html`<${QuietFields} quiet=${subscription?.quiet_hours ?? null} error=${byField.quiet_hours} />
      <${DigestFields} digest=${subscription?.digest ?? null} error=${byField.digest} />`
    }
    ${rest && html`<${ProblemBox} error=${rest} />`}
    ${ofFields && html`<${FieldErrorHelp} problem=${ofFields} />`}
    <div class="row">
      <button class="first" disabled=${busy.value}>${word}</button>
      <button type="button" onClick=${leave}>Cancel</button>
    </div>
  </form>`;
}

/** @param {{quiet: import("./types.js").QuietHours | null, error: string | undefined}} props */
function QuietFields({ quiet, error }) {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const days = quiet && quiet.days.length < 7 ? quiet.days.join(" ") : "";
  /** @type {readonly [string, string, string, string, string | undefined][]} */
  const fields = [
    ["quiet-from", "From", "For example 22:00", quiet?.from ?? "", error],
    ["quiet-to", "To", "For example 07:00, on the next day", quiet?.to ?? "", undefined],
    [
      "quiet-timezone",
      "Time zone",
      "For example Europe/Berlin",
      quiet?.timezone ?? here,
      undefined,
    ],
    ["quiet-days", "Begin on", "For example mon-thu sun. Empty: every day", days, undefined],
  ];
  return html`<fieldset class="subscriptions-filters">
    <legend>Quiet hours</legend>
    <p class="hint muted">Deliveries are held until their end, and are not ordered. Without times, there are none.</p>
    ${fields.map(
      ([
        name,
        label,
        hint,
        value,
        wrong,
      ]) => html`<${Field} key=${name} label=${label} hint=${hint} error=${wrong}>
        ${(/** @type {object} */ needs) =>
          html`<input name=${name} autocomplete="off" spellcheck=${false} defaultValue=${value} ...${needs} />`}
      <//>`,
    )}
  </fieldset>`;
}

/** Periods of digests. @type {readonly [string, string][]} */
const PERIODS = [
  ["", "Each notification at once"],
  ["15m", "Every 15 minutes"],
  ["1h", "Every hour"],
  ["daily", "Daily"],
];

/** @param {{digest: import("./types.js").Digest | null, error: string | undefined}} props */
function DigestFields({ digest, error }) {
  const every = useSignal(digest?.every ?? "");
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  /** @type {readonly [string, string, string, string][]} */
  const fields = [
    ["digest-at", "Send at", "For example 08:00", digest?.at ?? "09:00"],
    [
      "digest-timezone",
      "Zone of the digest",
      "For example Europe/Berlin",
      digest?.timezone ?? here,
    ],
  ];
  return html`<fieldset class="subscriptions-filters">
    <legend>Digest</legend>
    <p class="hint muted">One message for the notifications of a period. Hooks that expire before it are sent at once.</p>
    <${Field} label="Period" error=${error}>
      ${(/** @type {object} */ needs) => html`<select name="digest" value=${every.value} ...${needs}
        onChange=${(/** @type {any} */ event) => {
          every.value = event.target.value;
        }}>
        ${PERIODS.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}
      </select>`}
    <//>
    ${
      every.value === "daily" &&
      fields.map(
        ([name, label, hint, value]) => html`<${Field} key=${name} label=${label} hint=${hint}>
          ${(/** @type {object} */ needs) =>
            html`<input name=${name} autocomplete="off" spellcheck=${false} defaultValue=${value} ...${needs} />`}
        <//>`,
      )
    }
  </fieldset>`;
}

/**
 * Errors by field, and the error itself: in `rest` if it concerns no field, else in `ofFields`.
 * @param {unknown} error
 */
function splitError(error) {
  const none = /** @type {Record<string, string>} */ ({});
  if (!error) return { byField: none, rest: null, ofFields: null };
  const problem = asProblem(error);
  const { byField, rest } = findingsByField(problem.findings, FIELDS);
  const shown = rest.length > 0 || problem.findings.length === 0;
  return { byField, rest: shown ? error : null, ofFields: shown ? null : problem };
}
