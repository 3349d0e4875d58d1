// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Addresses of the page: what follows the # of its URL. It knows nothing of the page itself.

/** A place in the page: the parts of its path, and what its lists are narrowed by. */
export interface Route {
  parts: string[];
  query: Record<string, string>;
}

/** The place that a fragment is. Keys are encoded in it, also slashes in them. */
export function parse(fragment: string): Route {
  const [path = "", search = ""] = cut(fragment.replace(/^#/, ""), "?");
  return { parts: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(search)) };
}

/** The fragment of a place. */
export function href(parts: string[], query: Record<string, string | undefined> = {}): string {
  const kept = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(kept).toString();
  return "#/" + parts.map(encodeURIComponent).join("/") + (search ? "?" + search : "");
}

/** The code that the program which serves the page has put into its fragment, and where the page goes then. */
export function codeIn(fragment: string): { code: string; to: string } | undefined {
  if (!fragment.startsWith("#code=")) return undefined;
  const said = new URLSearchParams(fragment.slice(1));
  const to = said.get("to") ?? "";
  return { code: said.get("code") ?? "", to: to.startsWith("/") ? to : "/" };
}

function cut(text: string, at: string): string[] {
  const i = text.indexOf(at);
  return i < 0 ? [text] : [text.slice(0, i), text.slice(i + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
