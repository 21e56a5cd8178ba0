/** Who the reader is, and what they may do. A key is kept in memory alone: a reload forgets it. */

import type { IdentityDocument, Operations } from "#client";
import { asks, grants } from "./grants";
import { store } from "./store";

export type Session =
  | { state: "asking" }
  | { state: "out"; said?: string }
  | { state: "in"; identity: IdentityDocument; open: boolean }
  | { state: "away" };

export const session = store<Session>({ state: "asking" });
let key = "";

/** Headers that tell the server who asks. */
export function credentials(_method: string): Record<string, string> {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Ask the server who we are. Without auth everybody is an admin. */
export async function whoAmI(): Promise<void> {
  try {
    const response = await fetch("/api/identity", { headers: credentials("GET"), credentials: "same-origin" });
    if (response.ok) {
      const identity = (await response.json()) as IdentityDocument;
      session.set({ state: "in", identity, open: identity.client === "" });
    } else if (response.status === 401 || response.status === 403) {
      const problem = await response.json().catch(() => ({}));
      session.set({ state: "out", said: key ? [problem.detail, problem.remedy].filter(Boolean).join(" ") : undefined });
      key = "";
    } else session.set({ state: "away" });
  } catch {
    session.set({ state: "away" });
  }
}

export async function signIn(given: string): Promise<void> {
  key = given.trim();
  await whoAmI();
}

export async function signOut(): Promise<void> {
  key = "";
  await whoAmI();
}

/** Whether the reader may call an operation. What they may not do is not shown. */
export function may(name: keyof Operations): boolean {
  const now = session.get();
  return now.state === "in" && grants[now.identity.role].includes(asks[name]);
}
