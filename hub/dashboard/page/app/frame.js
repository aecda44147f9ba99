/** The frame of every page: navigation, account, and the state of the event stream. */

import { now } from "../api/clock.js";
import { connection, follow, unfollow } from "../api/live.js";
import { enter, mode, session, setUserName, signOut, state } from "../api/session.js";
import { waiting, watchInbox } from "../inbox/waiting.js";
import { span } from "../parts/ago.js";
import { Dialog } from "../parts/dialog.js";
import { Icon } from "../parts/icon.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { SignIn } from "../signin/signin.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { KeyHelp, useKeys } from "./keys.js";
import { Notices, notify } from "./notices.js";
import { NAVIGATION, pageByName } from "./pages.js";
import { go, here, href, leave } from "./route.js";
import { ThemeButton } from "./theme.js";

export function Frame() {
  const { project, page } = here.value;
  const wrong = useSignal(/** @type {unknown} */ (null));
  const tries = useSignal(0);
  useEffect(() => {
    wrong.value = null;
    if (project === "") state.value = "out";
    else
      enter(project).catch((error) => {
        wrong.value = error;
      });
  }, [project, tries.value]);
  const inside = state.value === "in" || state.value === "over";
  const live = state.value === "in" && session.value?.project === project;
  useEffect(() => {
    if (!live) return;
    const stop = watchInbox(project);
    follow(project);
    return () => {
      unfollow();
      stop();
    };
  }, [project, live]);
  useEffect(() => {
    if (inside && project && !page) go(href(project, "inbox"));
  }, [inside, project, page]);
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${toMain}>Skip to content</a>
    <${Head} inside=${inside} project=${project} page=${page} />
    ${inside && html`<${NotLive} />`}
    ${
      inside && session.value?.project === project
        ? html`<${Shown} key=${project} />`
        : html`<main class="frame-main" id="main">
            <${ProblemBox} error=${wrong.value} />
            ${
              wrong.value &&
              html`<div><button onClick=${() => {
                tries.value += 1;
              }}>Try again</button></div>`
            }
            ${state.value === "out" && html`<${SignIn} project=${project} />`}
          </main>`
    }
    ${
      state.value === "over" &&
      html`<${Dialog} title="Your session has ended" onClose=${() => {}}>
        <${SignIn} project=${project} over=${true} />
      <//>`
    }
    <${Notices} />
    <${KeyHelp} />
  </div>`;
}

/** @param {Event} event */
function toMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Shown() {
  const { project, page, rest } = here.value;
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const found = pageByName(page);
  const title = found?.title ?? "Not found";
  useEffect(() => {
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [project, page, rest.join("/")]);
  const many = waiting.value?.length ?? 0;
  useEffect(() => {
    document.title = `${many > 0 ? `(${many}) ` : ""}${title} · ${project} · Headgate`;
  }, [title, project, many]);
  useKeys(
    NAVIGATION.map((one) => ({
      key: `g ${one.key}`,
      does: `go to ${one.title.toLowerCase()}`,
    })),
  );
  useGoing(project);
  return html`<main class=${`frame-main ${found?.wide ? "wide" : ""}`} id="main" tabindex="-1" ref=${main}>
    ${
      found
        ? html`<${found.shows} key=${[project, page, ...rest].join("/")} project=${project} rest=${rest} />`
        : html`<h1>Page not found</h1>
            <p><a href=${href(project, "inbox")}>Go to the inbox</a></p>`
    }
  </main>`;
}

/** `g`, then the key of a page, opens that page. @param {string} project */
function useGoing(project) {
  const going = useRef(false);
  const keys = NAVIGATION.filter((one) => one.key);
  useKeys([
    {
      key: "g",
      does: "go to a page: press its key next",
      run: () => {
        going.current = true;
        addEventListener(
          "keydown",
          (event) => {
            going.current = false;
            const found = keys.find((one) => one.key === event.key);
            if (!found) return;
            event.preventDefault();
            go(href(project, found.name));
          },
          { once: true, capture: true },
        );
      },
    },
  ]);
}

/** @param {{inside: boolean, project: string, page: string}} props */
function Head({ inside, project, page }) {
  return html`<header class="frame-head">
    <a class="brand" href=${inside ? href(project, "inbox") : "#/"}>
      <${Mark} /> Headgate ${inside && html`<span class="project">${project}</span>`}
    </a>
    ${
      inside &&
      html`<nav class="frame-nav" aria-label="Pages">
        ${NAVIGATION.map(
          (one) => html`<a key=${one.name} href=${href(project, one.name)}
            aria-current=${one.name === page ? "page" : undefined}>
            ${one.title}${one.name === "inbox" && html`<${Count} />`}
          </a>`,
        )}
      </nav>`
    }
    <div class="frame-who">
      ${inside && html`<${Live} /><${Who} />`}
      <${ThemeButton} />
    </div>
  </header>`;
}

function Mark() {
  return html`<svg viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" fill="#0b3b46" />
    <path d="M7 6h4v20H7zM21 6h4v20h-4z" fill="#e8f4f2" />
    <path d="M12 9h8v8h-8z" fill="#f5b544" />
    <path d="M7 22c3 0 3 2 6 2s3-2 6-2 3 2 6 2" fill="none" stroke="#5fc3cf" stroke-width="2" />
  </svg>`;
}

function Count() {
  const many = waiting.value?.length ?? 0;
  if (many === 0) return null;
  return html`<span class="count">${many}<span class="only-read"> waiting</span></span>`;
}

function Live() {
  const { state: how } = connection.value;
  const word = { live: "live", connecting: "connecting", lost: "disconnected" }[how];
  return html`<span class="live" data-state=${how}>
    <${Icon} name=${how === "lost" ? "broken" : "live"} label=${how === "live" ? "live" : undefined} /><span class="word">${word}</span>
  </span>`;
}

/** A bar that shows since when the event stream is disconnected. */
function NotLive() {
  const { state: how, since } = connection.value;
  if (how !== "lost") return null;
  const seconds = (now.value - since) / 1000;
  return html`<div class="bar" role="alert">
    <${Icon} name="broken" />
    <span>The event stream disconnected ${span(seconds)} ago. This page may be out of date. Reconnecting…</span>
  </div>`;
}

function Who() {
  const editing = useSignal(false);
  const who = session.value;
  if (!who) return null;
  if (mode !== "none") {
    const out = () => {
      signOut().catch((error) => notify(`Could not sign out: ${asProblem(error).message}`, "bad"));
    };
    return html`<span class="name" title=${who.roles.join(", ")}>${who.name}</span>
      <button class="plain" onClick=${() => leave(out)}>Sign out</button>`;
  }
  return html`<button class="plain" onClick=${() => {
    editing.value = true;
  }} title="Change your name">${who.name}</button>
    ${
      editing.value &&
      html`<${CallMyself} done=${() => {
        editing.value = false;
      }} />`
    }`;
}

/** @param {{done: () => void}} props */
function CallMyself({ done }) {
  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    await setUserName(String(form.get("name") ?? "").trim());
    done();
  }
  return html`<${Dialog} title="Your name" onClose=${done}>
    <p class="muted">This server does not require sign-in. Your name is recorded with your decisions.</p>
    <form class="column" onSubmit=${submit}>
      <label class="field"><span class="label">Name</span>
        <input name="name" autocomplete="username" defaultValue=${session.value?.name ?? ""} /></label>
      <div class="acts"><button type="button" onClick=${done}>Cancel</button><button class="first">Save</button></div>
    </form>
  <//>`;
}
