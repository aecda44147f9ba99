/** The pages: path segment, component and position in the navigation. */

import { Audit } from "../audit/audit.js";
import { EditPage, NewPage } from "../editor/pages.js";
import { Inbox } from "../inbox/inbox.js";
import { CliLogin } from "../signin/cli_login.js";
import { StackPage } from "../stack/stack.js";
import { Stacks } from "../stacks/stacks.js";
import { Subscriptions } from "../subscriptions/subscriptions.js";
import { Usage } from "../usage/usage.js";

/**
 * shows: the component; `rest` is the path after the page's name. key: pressed after `g`. wide:
 * uses the full window width. under: the page of the navigation that it belongs to.
 * @typedef {{name: string, title: string, component: (props: {project: string, rest: string[]}) => any,
 *   key?: string, wide?: boolean, under?: string}} Page
 */

/** Pages in the navigation, in order. @type {Page[]} */
export const NAVIGATION = [
  { name: "inbox", title: "Inbox", component: Inbox, key: "i" },
  { name: "stacks", title: "Stacks", component: Stacks, key: "s" },
  { name: "subscriptions", title: "Subscriptions", component: Subscriptions, key: "n" },
  { name: "audit", title: "Audit", component: Audit, key: "a" },
  { name: "usage", title: "Usage", component: Usage, key: "u" },
];

/** @type {Page[]} */
const OTHER_PAGES = [
  { name: "stack", title: "Stack", component: StackPage, wide: true, under: "stacks" },
  { name: "edit", title: "Edit", component: EditPage, wide: true, under: "stacks" },
  { name: "cli-login", title: "Sign in to the command line", component: CliLogin },
  { name: "new", title: "New stack", component: NewPage, wide: true, under: "stacks" },
];

/** @param {string} name */
export function pageByName(name) {
  return [...NAVIGATION, ...OTHER_PAGES].find((page) => page.name === name);
}
