/** A new subscription, or what one asks for changed. */

import { call } from "../api/client.js";
import { go, href } from "../app/route.js";
import { Once } from "../parts/copy.js";
import { Field } from "../parts/field.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { byField, FILTERS, said } from "./wanted.js";

/** @typedef {import("./shapes.js").Subscription} Subscription */

/** Channel -> what its target is. @type {Record<string, string>} */
const CHANNELS = {
  webhook: "A URL that events are POSTed to, such as https://gate.example/hook.",
  amqp: "An exchange of the server's RabbitMQ.",
  heat: "The exchange that OpenStack's own listeners hear.",
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
    <${Form} hint=${CHANNELS[channel.value]} word="Subscribe" send=${send}
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
      html`<${Once} title="Subscribed" what="the secret" text=${made.value.secret}
        onClose=${() => made.value && go(href(project, "subscriptions", made.value.id))}>
        What is sent is signed with this secret, so that the receiver can tell that it is from here.
      <//>`
    }`;
}

/** @param {{project: string, one: Subscription, done: (now?: Subscription) => void}} props */
export function ChangeForm({ project, one, done }) {
  return html`<${Form} one=${one} hint=${CHANNELS[one.channel]} word="Save" leave=${() => done()}
    send=${async (/** @type {object} */ body) => done(await call("PATCH", project, `/subscriptions/${one.id}`, body))} />`;
}

/**
 * children: is given what is wrong with the channel.
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
      await send(said(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))));
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
      <legend>Only</legend>
      <p class="hint muted">Globs, with blanks between them; an empty field takes everything.</p>
      ${FILTERS.map(
        ([
          filter,
          label,
          on,
          example,
        ]) => html`<${Field} key=${filter} label=${label} hint=${`${on}, such as ${example}`} wrong=${of[filter]}>
          ${(
            /** @type {object} */ needs,
          ) => html`<input class="code" name=${filter} autocomplete="off" spellcheck=${false}
            defaultValue=${one?.[filter].join(" ") ?? ""} ...${needs} />`}
        <//>`,
      )}
    </fieldset>
    <label class="row"><input type="checkbox" name="nested" defaultChecked=${one?.nested ?? true} />
      Also what happens in stacks inside of stacks</label>
    <label class="row"><input type="checkbox" name="ordered" defaultChecked=${one?.ordered ?? true} />
      The events of one stack in their order: a later one waits for those before it</label>
    ${rest && html`<${ProblemBox} error=${rest} />`}
    <div class="row">
      <button class="first" disabled=${busy.value}>${word}</button>
      <button type="button" onClick=${leave}>Cancel</button>
    </div>
  </form>`;
}

/** What is wrong, by field; and the problem itself, where it is of none of them. @param {unknown} error */
function sorted(error) {
  if (!error) return { of: /** @type {Record<string, string>} */ ({}), rest: null };
  const problem = asProblem(error);
  const { of, rest } = byField(problem.findings, FIELDS);
  const shown = rest.length > 0 || problem.findings.length === 0;
  return { of, rest: shown ? error : null };
}
