/** What stands around every view: the menu, the top bar, the search, and who the reader is. */

import { useEffect, useState } from "preact/hooks";
import { ErrorBoundary, Route, Router, useLocation } from "preact-iso";
import { useCall } from "#/api/client";
import { connection } from "#/api/connection";
import { may, session, signOut, whoAmI } from "#/api/session";
import { useStore } from "#/api/store";
import { Empty, headings, Skeleton } from "#/kit/base";
import { Notes } from "#/kit/dialog";
import { narrow } from "#/kit/narrow";
import { has, VIEWS, type View } from "#/routes";
import { language, type Theme, theme, useWords } from "#/words";
import { common } from "#/words/common";
import { Search } from "./search";
import { SignIn } from "./sign-in";
import { frame } from "./words";

const AGAIN_MS = 2000;

export function Frame() {
  const now = useStore(session);
  useStore(language);
  const w = useWords(frame);
  const [searching, setSearching] = useState(false);
  useEffect(() => {
    if (now.state !== "away") return;
    const timer = setTimeout(whoAmI, AGAIN_MS);
    return () => clearTimeout(timer);
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setSearching(true);
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  if (now.state === "asking") return <Skeleton />;
  if (now.state === "away")
    return (
      <p class="lost" role="alert">
        {w.lost}
      </p>
    );
  if (now.state === "out") return <SignIn who={now.who} />;
  return (
    <>
      <a class="skip" href="#view">
        {w.skip}
      </a>
      <div class="frame">
        <Menu />
        <TopBar search={() => setSearching(true)} />
        <main id="view" tabIndex={-1}>
          <Lost />
          <Views />
        </main>
      </div>
      {searching && <Search close={() => setSearching(false)} />}
      <Notes />
    </>
  );
}

function Lost() {
  const w = useWords(frame);
  const state = useStore(connection.state);
  return state === "lost" ? (
    <p class="lost" role="alert">
      {w.lost}
    </p>
  ) : null;
}

function Views() {
  const { path, route } = useLocation();
  const lang = useStore(language);
  const [error, setError] = useState<Error | null>(null);
  const w = useWords(frame);
  useEffect(() => {
    setError(null);
    if (path === "/") route("/try", true);
    document.querySelector(".frame")?.classList.remove("open");
  }, [path, route]);
  if (error)
    return (
      <Empty isView title={w.broken}>
        {error.message}
      </Empty>
    );
  return (
    <ErrorBoundary onError={setError}>
      <Router key={lang} onLoadStart={() => busy(true)} onLoadEnd={() => busy(false)}>
        {VIEWS.map((view) => (
          <Route key={view.path} path={view.path} component={may(view.needs) ? view.component : MayNot} />
        ))}
        <Route default component={path === "/" ? Skeleton : NotFound} />
      </Router>
    </ErrorBoundary>
  );
}

const busy = (is: boolean) => document.getElementById("view")?.setAttribute("aria-busy", String(is));

function MayNot() {
  const w = useWords(frame);
  return (
    <Empty isView title={w.mayNot}>
      {w.mayNotAbout}
    </Empty>
  );
}

function NotFound() {
  const w = useWords(common);
  return <Empty isView title={w.notFound} />;
}

/** The view of a path, and the views above it. */
export function trail(path: string): { view: View; href: string; own?: string }[] {
  const parts = path.split("/").filter(Boolean);
  const found: { view: View; href: string; own?: string }[] = [];
  for (let length = 1; length <= parts.length; length++) {
    const given = parts.slice(0, length);
    const view = VIEWS.find((each) => {
      const pattern = each.path.split("/").filter(Boolean);
      return pattern.length === length && pattern.every((part, at) => part.startsWith(":") || part === given[at]);
    });
    if (!view) continue;
    const own = view.path.split("/").at(-1)!.startsWith(":") ? decodeURIComponent(given.at(-1)!) : undefined;
    found.push({ view, href: `/${given.join("/")}`, own });
  }
  return found;
}

function Menu() {
  const w = useWords(frame);
  const words = w as unknown as Record<string, string>;
  const { path } = useLocation();
  const isNarrow = useStore(narrow);
  const allowed = VIEWS.filter((view) => view.menu && may(view.needs));
  const bar = allowed.filter((view) => view.menu === "bar");
  const seen = isNarrow ? bar.slice(0, 4) : bar;
  const rest = allowed.filter((view) => !seen.includes(view));
  const isInside = rest.some((view) => path === view.path || path.startsWith(`${view.path}/`));
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (isInside && !isNarrow) setOpen(true);
  }, [isInside, isNarrow]);
  const link = (view: View) => (
    <a
      key={view.path}
      href={view.path}
      aria-current={path === view.path || path.startsWith(`${view.path}/`) ? "page" : undefined}
      onClick={() => isNarrow && setOpen(false)}
    >
      {words[view.name]}
      {view.name === "jobs" && <ActiveJobs />}
    </a>
  );
  return (
    <nav class="menu" aria-label={w.menu}>
      <a class="brand" href="/try">
        <img src="/favicon.svg" alt="" width="18" height="18" /> Scrapeyard
      </a>
      {seen.map(link)}
      {rest.length > 0 && (
        <button
          type="button"
          class={isInside ? "quiet inside" : "quiet"}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          {w.more} {open ? "▴" : "▾"}
        </button>
      )}
      {open && <div class="rest">{rest.map(link)}</div>}
      <Health />
    </nav>
  );
}

function ActiveJobs() {
  const w = useWords(frame);
  const found = useCall("get_stats", {}, { every: 5, enabled: may("get_stats") });
  const active = Object.values(found.data?.jobs.by_status ?? {}).reduce((sum, count) => sum + count, 0);
  return active ? (
    <span class="count" title={w.activeJobs(String(active))}>
      {active}
    </span>
  ) : null;
}

/** Green, amber with the reason in words, or red. */
function Health() {
  const w = useWords(frame);
  const found = useCall("health", {}, { every: 10, enabled: may("health") });
  if (!may("health")) return null;
  const status = found.isError ? "down" : (found.data?.status ?? "ok");
  const tone = { ok: "good", degraded: "warn", down: "bad" }[status];
  const away = Object.entries(found.data?.dependencies ?? {}).filter(([, one]) => one.state === "away");
  const word = { ok: w.healthy, degraded: w.degraded, down: w.down }[status];
  return (
    <a class={`health status ${tone}`} href={has("/system") ? "/system" : undefined}>
      <span aria-hidden="true">●</span> {word}
      {away.map(([name, one]) => (
        <small key={name}>
          {name}: {one.detail}
        </small>
      ))}
    </a>
  );
}

/** An id that is read by nobody: its kind and its end. */
const shortened = (own: string) => own.replace(/^([a-z]+_)[0-9a-f]{26}([0-9a-f]{6})$/, "$1…$2");

function TopBar({ search }: { search: () => void }) {
  const w = useWords(frame);
  const words = w as unknown as Record<string, string>;
  const { path } = useLocation();
  const now = useStore(session);
  const themed = useStore(theme);
  const next: Record<Theme, Theme> = { auto: "dark", dark: "light", light: "auto" };
  const above = trail(path);
  const known = useStore(headings);
  const nameOf = ({ view, href, own }: (typeof above)[number]) =>
    own === undefined ? words[view.name] : (known[href] ?? shortened(own));
  useEffect(() => {
    const last = above.at(-1);
    document.title = `${last ? nameOf(last) : ""} · Scrapeyard`;
  });
  return (
    <header class="top">
      <nav class="trail" aria-label="breadcrumb">
        {above.map((one, at) =>
          at === above.length - 1 ? (
            <span key={one.href} aria-current="page">
              {nameOf(one)}
            </span>
          ) : (
            <a key={one.href} href={one.href}>
              {nameOf(one)}
            </a>
          ),
        )}
      </nav>
      <button type="button" class="find" onClick={search} aria-keyshortcuts="Control+K">
        <span aria-hidden="true">⌕</span> <span class="word">{w.find}</span> <kbd>Ctrl K</kbd>
      </button>
      <button
        type="button"
        class="quiet"
        title={`${w.theme}: ${w[themed]}`}
        aria-label={`${w.theme}: ${w[themed]}`}
        onClick={() => theme.set(next[themed])}
      >
        {themed === "dark" ? "☾" : themed === "light" ? "☀" : "◐"}
      </button>
      <button
        type="button"
        class="quiet"
        title={w.language}
        lang={language.get() === "ko" ? "en" : "ko"}
        onClick={() => language.set(language.get() === "ko" ? "en" : "ko")}
      >
        {language.get() === "ko" ? "English" : "한국어"}
      </button>
      {now.state === "in" && now.who.auth_required && (
        <details class="who">
          <summary>{w.you(now.who.client, now.who.role ?? "")}</summary>
          <button type="button" onClick={signOut}>
            {w.signOut}
          </button>
        </details>
      )}
    </header>
  );
}
