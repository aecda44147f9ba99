/** The form for a new or changed subscription. */

import { call } from "../api/client.js";
import { go, href } from "../app/route.js";
import { SecretDialog } from "../parts/copy.js";
import { Field } from "../parts/field.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { FILTERS, findingsByField, requestBody } from "./filters.js";

/** @typedef {import("./types.js").Subscription} Subscription */

/** Channel and the meaning of its target. @type {Record<string, string>} */
const CHANNELS = {
  webhook: "URL that receives events by HTTP POST, for example https://gate.example/hook.",
  amqp: "Exchange on the server's RabbitMQ.",
  heat: "Exchange on which OpenStack services listen for notifications.",
};
const FIELDS = ["channel", "target", ...FILTERS.map(([filter]) => filter)];

/** @param {{project: string}} props */
export function NewSubscription({ project }) {
  const made = useSignal(/** @type {(Subscription & {secret: string}) | null} */ (null));
  const channel = useSignal("webhook");
  /** @param {Record<string, unknown>} body */
  async function send(body) {
    made.value = await call("POST", project, "/subscriptions", { channel: channel.value, ...body });
  }
  return html`<h1>New subscription</h1>
    <${Form} hint=${CHANNELS[channel.value]} word="Create subscription" send=${send}
      leave=${() => go(href(project, "subscriptions"))}>
      ${(/** @type {string | undefined} */ wrong) => html`<${Field} label="Channel" wrong=${wrong}>
        ${(/** @type {object} */ needs) => html`<select value=${channel.value} ...${needs}
          onChange=${(/** @type {any} */ event) => {
            channel.value = event.target.value;
          }}>
          ${Object.keys(CHANNELS).map((one) => html`<option key=${one}>${one}</option>`)}
        </select>`}
      <//>`}
    <//>
    ${
      made.value &&
      html`<${SecretDialog} title="Subscription created" what="the secret" text=${made.value.secret}
        onClose=${() => made.value && go(href(project, "subscriptions", made.value.id))}>
        Deliveries are signed with this secret. Configure it in the receiver to verify them.
      <//>`
    }`;
}

/** @param {{project: string, one: Subscription, done: (now?: Subscription) => void}} props */
export function ChangeForm({ project, one, done }) {
  return html`<${Form} one=${one} hint=${CHANNELS[one.channel]} word="Save" leave=${() => done()}
    send=${async (/** @type {object} */ body) => done(await call("PATCH", project, `/subscriptions/${one.id}`, body))} />`;
}

/**
 * children: receives the error of the channel field.
 * @param {{one?: Subscription, hint: string | undefined, word: string, leave: () => void,
 *   send: (body: Record<string, unknown>) => Promise<void>,
 *   children?: (wrong: string | undefined) => unknown}} props
 */
function Form({ one, hint, word, leave, send, children }) {
  const wrong = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    busy.value = true;
    wrong.value = null;
    try {
      await send(requestBody(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))));
    } catch (error) {
      wrong.value = error;
    } finally {
      busy.value = false;
    }
  }
  const { of, rest } = sorted(wrong.value);
  return html`<form class="card subscriptions-form" onSubmit=${submit}>
    ${children?.(of.channel)}
    <${Field} label="Target" hint=${hint ?? ""} wrong=${of.target}>
      ${(
        /** @type {object} */ needs,
      ) => html`<input name="target" required autocomplete="off" inputmode="url"
        defaultValue=${one?.target ?? ""} ...${needs} />`}
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
        ]) => html`<${Field} key=${filter} label=${label} hint=${`${on}, for example ${example}`} wrong=${of[filter]}>
          ${(
            /** @type {object} */ needs,
          ) => html`<input class="code" name=${filter} autocomplete="off" spellcheck=${false}
            defaultValue=${one?.[filter].join(" ") ?? ""} ...${needs} />`}
        <//>`,
      )}
    </fieldset>
    <label class="row"><input type="checkbox" name="nested" defaultChecked=${one?.nested ?? true} />
      Include events of nested stacks</label>
    <label class="row"><input type="checkbox" name="ordered" defaultChecked=${one?.ordered ?? true} />
      Deliver the events of each stack in order (each waits for the one before it)</label>
    ${rest && html`<${ProblemBox} error=${rest} />`}
    <div class="row">
      <button class="first" disabled=${busy.value}>${word}</button>
      <button type="button" onClick=${leave}>Cancel</button>
    </div>
  </form>`;
}

/** Errors by field, and the error itself if it concerns no field. @param {unknown} error */
function sorted(error) {
  if (!error) return { of: /** @type {Record<string, string>} */ ({}), rest: null };
  const problem = asProblem(error);
  const { of, rest } = findingsByField(problem.findings, FIELDS);
  const shown = rest.length > 0 || problem.findings.length === 0;
  return { of, rest: shown ? error : null };
}
