/** Who the reader is, and what they may do: a session whose cookie scripts cannot read. */

import { language } from "#/words";
import type { Operations, SessionDocument } from "#client";
import { asks } from "./grants";
import { store } from "./store";

export type Session = { state: "asking" } | { state: "away" } | { state: "out" | "in"; who: SessionDocument };

export const session = store<Session>({ state: "asking" });

/** What a call that changes something must carry beside the cookie. */
export function credentials(method: string): Record<string, string> {
  const now = session.get();
  const token = now.state === "in" ? now.who.csrf_token : null;
  return token && method !== "GET" ? { "X-CSRF-Token": token } : {};
}

function take(who: SessionDocument): void {
  session.set({ state: who.signed_in ? "in" : "out", who });
}

/** Ask the server who we are. Where nobody is asked for a key, everybody may do everything. */
export async function whoAmI(): Promise<void> {
  try {
    const response = await fetch("/api/session", { credentials: "same-origin" });
    if (response.ok) take((await response.json()) as SessionDocument);
    else session.set({ state: "away" });
  } catch {
    session.set({ state: "away" });
  }
}

/** Returns what the server has against the key; undefined if it takes it. */
export async function signIn(key: string): Promise<{ detail?: string; remedy?: string } | undefined> {
  const headers = { "Content-Type": "application/json", "Accept-Language": language.get() };
  const response = await fetch("/api/session", {
    method: "POST",
    headers,
    body: JSON.stringify({ key: key.trim() }),
    credentials: "same-origin",
  });
  const said = await response.json();
  if (!response.ok) return said;
  take(said as SessionDocument);
}

export async function signOut(): Promise<void> {
  await fetch("/api/session", { method: "DELETE", headers: credentials("DELETE"), credentials: "same-origin" });
  await whoAmI();
}

/** Whether the reader may call an operation. What they may not do is not shown. */
export function may(name: keyof Operations): boolean {
  const now = session.get();
  return now.state === "in" && (now.who.permissions as string[]).includes(asks[name]);
}
