/** The frame of every page: navigation, account, and the state of the event stream. */

import { now } from "../api/clock.js";
import { connection, follow, unfollow } from "../api/live.js";
import { enter, mode, session, setUserName, signOut, state } from "../api/session.js";
import { waiting, watchInbox } from "../inbox/waiting.js";
import { formatAge } from "../parts/ago.js";
import { Dialog } from "../parts/dialog.js";
import { Icon } from "../parts/icon.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { SignIn } from "../signin/signin.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { watchForDesktop } from "./desktop.js";
import { KeyHelp, useKeys } from "./keys.js";
import { Notices, notify } from "./notices.js";
import { NAVIGATION, pageByName } from "./pages.js";
import { currentPlace, href, leave, navigate } from "./route.js";
import { ThemeButton } from "./theme.js";

export function Frame() {
  const { project, page } = currentPlace.value;
  const failure = useSignal(/** @type {unknown} */ (null));
  const tries = useSignal(0);
  useEffect(() => {
    failure.value = null;
    if (project === "") state.value = "out";
    else
      enter(project).catch((error) => {
        failure.value = error;
      });
  }, [project, tries.value]);
  const inside = state.value === "in" || state.value === "over";
  const live = state.value === "in" && session.value?.project === project;
  useEffect(() => {
    if (!live) return;
    const stop = watchInbox(project);
    const stopNotifying = watchForDesktop(project);
    follow(project);
    return () => {
      unfollow();
      stopNotifying();
      stop();
    };
  }, [project, live]);
  useEffect(() => {
    if (inside && project && !page) navigate(href(project, "inbox"));
  }, [inside, project, page]);
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${skipToMain}>Skip to content</a>
    <${Header} inside=${inside} project=${project} page=${page} />
    ${inside && html`<${DisconnectedBar} />`}
    ${
      inside && session.value?.project === project
        ? html`<${PageContent} key=${project} />`
        : html`<main class="frame-main" id="main">
            <${ProblemBox} error=${failure.value} />
            ${
              failure.value &&
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
function skipToMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function PageContent() {
  const { project, page, rest } = currentPlace.value;
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const result = pageByName(page);
  const title = result?.title ?? "Not found";
  useEffect(() => {
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [project, page, rest.join("/")]);
  const many = waiting.value?.length ?? 0;
  useEffect(() => {
    document.title = `${many > 0 ? `(${many}) ` : ""}${title} · ${project} · Headgate`;
  }, [title, project, many]);
  useKeys(
    NAVIGATION.map((item) => ({
      key: `g ${item.key}`,
      description: `go to ${item.title.toLowerCase()}`,
    })),
  );
  usePageKeys(project);
  return html`<main class=${`frame-main ${result?.wide ? "wide" : ""}`} id="main" tabindex="-1" ref=${main}>
    ${
      result
        ? html`<${result.component} key=${[project, page, ...rest].join("/")} project=${project} rest=${rest} />`
        : html`<h1>Page not found</h1>
            <p><a href=${href(project, "inbox")}>Go to the inbox</a></p>`
    }
  </main>`;
}

/** `g`, then the key of a page, opens that page. @param {string} project */
function usePageKeys(project) {
  const awaitingKey = useRef(false);
  const keys = NAVIGATION.filter((item) => item.key);
  useKeys([
    {
      key: "g",
      description: "go to a page: press its key next",
      run: () => {
        awaitingKey.current = true;
        addEventListener(
          "keydown",
          (event) => {
            awaitingKey.current = false;
            const match = keys.find((item) => item.key === event.key);
            if (!match) return;
            event.preventDefault();
            navigate(href(project, match.name));
          },
          { once: true, capture: true },
        );
      },
    },
  ]);
}

/** @param {{inside: boolean, project: string, page: string}} props */
function Header({ inside, project, page }) {
  const under = pageByName(page)?.under;
  /** @param {string} name */
  const current = (name) => (name === page ? "page" : name === under ? "true" : undefined);
  return html`<header class="frame-head">
    <a class="brand" href=${inside ? href(project, "inbox") : "#/"}>
      <${Mark} /> Headgate ${inside && html`<span class="project">${project}</span>`}
    </a>
    ${
      inside &&
      html`<nav class="frame-nav" aria-label="Pages">
        ${NAVIGATION.map(
          (item) => html`<a key=${item.name} href=${href(project, item.name)}
            aria-current=${current(item.name)}>
            ${item.title}${item.name === "inbox" && html`<${WaitingCount} />`}
          </a>`,
        )}
      </nav>`
    }
    <div class="frame-who">
      ${inside && html`<${ConnectionState} /><${UserMenu} />`}
      <${ThemeButton} />
    </div>
  </header>`;
}

function Mark() {
  return html`<svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
    <rect width="32" height="32" rx="7" fill="#0b3b46" />
    <path d="M7 6h4v20H7zM21 6h4v20h-4z" fill="#e8f4f2" />
    <path d="M12 9h8v8h-8z" fill="#f5b544" />
    <path d="M7 22c3 0 3 2 6 2s3-2 6-2 3 2 6 2" fill="none" stroke="#5fc3cf" stroke-width="2" />
  </svg>`;
}

function WaitingCount() {
  const many = waiting.value?.length ?? 0;
  if (many === 0) return null;
  return html`<span class="count">${many}<span class="only-read"> waiting</span></span>`;
}

function ConnectionState() {
  const { state: how } = connection.value;
  const word = { live: "live", connecting: "connecting", lost: "disconnected" }[how];
  return html`<span class="live" data-state=${how}>
    <${Icon} name=${how === "lost" ? "broken" : "live"} label=${how === "live" ? "live" : undefined} /><span class="word">${word}</span>
  </span>`;
}

/** A bar that shows since when the event stream is disconnected. */
function DisconnectedBar() {
  const { state: how, since } = connection.value;
  if (how !== "lost") return null;
  const seconds = (now.value - since) / 1000;
  return html`<div class="bar" role="alert">
    <${Icon} name="broken" />
    <span>The event stream disconnected ${formatAge(seconds)} ago. This page may be out of date. Reconnecting…</span>
  </div>`;
}

/** Removes the drafts of answers and templates that the window has stored. */
function forgetDrafts() {
  sessionStorage.clear();
}

function UserMenu() {
  const editing = useSignal(false);
  const user = session.value;
  if (!user) return null;
  if (mode !== "none") {
    const out = () => {
      signOut().then(forgetDrafts, (error) =>
        notify(`Could not sign out: ${asProblem(error).message}`, "bad"),
      );
    };
    return html`<span class="name" title=${user.roles.join(", ")}>${user.name}</span>
      <button class="plain" onClick=${() => leave(out)}>Sign out</button>`;
  }
  return html`<button class="plain" onClick=${() => {
    editing.value = true;
  }} title="Change your name">${user.name}</button>
    ${
      editing.value &&
      html`<${NameDialog} done=${() => {
        editing.value = false;
      }} />`
    }`;
}

/** @param {{done: () => void}} props */
function NameDialog({ done }) {
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
