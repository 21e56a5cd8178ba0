/**
 * A page as it was fetched, in a frame that runs nothing and loads nothing.
 *
 * The frame has the address of no site: its text is in the page itself, `sandbox` forbids scripts, forms and windows,
 * and it inherits the page's Content-Security-Policy, which allows no request but to this server. Styles are put in as
 * style sheets made by script, since the policy refuses those in the text. Sheets that the page links to come through
 * the server, as any other page, and only when the reader asks for them.
 */

import { useQuery } from "@tanstack/preact-query";
import { useMemo, useRef, useState } from "preact/hooks";
import { api } from "#/api/client";
import { may } from "#/api/session";
import { Problem } from "#/kit/base";
import { number, useWords } from "#/words";
import type { ScrapeCall } from "#client";
import { quietStyles } from "./styles";
import { own } from "./words";

const MOST_SHEETS = 8;
const GONE =
  "script, style, link, iframe, frame, frameset, object, embed, base, meta, template, svg, math, video, audio, source, track, portal";
const KEPT = ["alt", "title", "colspan", "rowspan", "lang", "dir", "class", "id", "width", "height", "open"];

export interface Harmless {
  body: string;
  css: string;
  /** Style sheets that the page links to. */
  sheets: string[];
}

/** A page without anything that would run or load. Pictures keep their words, and those in the text itself. */
export function harmless(html: string, address: string): Harmless {
  const page = new DOMParser().parseFromString(html, "text/html");
  const base = resolved(page.querySelector("base")?.getAttribute("href") ?? "", address) ?? address;
  const links = [...page.querySelectorAll<HTMLLinkElement>('link[rel~="stylesheet"]')]
    .filter((link) => !/print/.test(link.media))
    .map((link) => resolved(link.getAttribute("href") ?? "", base))
    .filter((link): link is string => link !== null);
  const css = [...page.querySelectorAll("style")].map((style) => style.textContent ?? "").join("\n");
  for (const one of page.querySelectorAll(GONE)) one.remove();
  for (const one of page.querySelectorAll("*")) {
    for (const { name, value } of [...one.attributes]) {
      if (name === "style") one.setAttribute("data-style", value);
      if (name === "src" && one.tagName === "IMG" && value.startsWith("data:image/")) continue;
      if (!KEPT.includes(name)) one.removeAttribute(name);
    }
  }
  return { body: page.body.outerHTML, css, sheets: [...new Set(links)].slice(0, MOST_SHEETS) };
}

function resolved(link: string, base: string): string | null {
  try {
    const url = new URL(link, base);
    return /^https?:$/.test(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function Preview({ html, address, mark }: { html: string; address: string; mark?: string }) {
  const w = useWords(own);
  const page = useMemo(() => harmless(html, address), [html, address]);
  const [asked, setAsked] = useState(false);
  const sheets = useQuery({
    queryKey: ["sheets", page.sheets],
    queryFn: async () => Promise.all(page.sheets.map(sheetOf)),
    enabled: asked,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const frame = useRef<HTMLIFrameElement>(null);
  const css = [...(sheets.data ?? []), page.css].join("\n");
  const dress = () => frame.current?.contentDocument && put(frame.current, css, mark ?? "");
  const missing = page.sheets.length > 0 && !sheets.data;
  return (
    <div class="stack">
      <p class="muted line">
        <span>{w.previewAbout}</span>
        {missing && may("scrape") && (
          <button type="button" class="small" disabled={sheets.isFetching} onClick={() => setAsked(true)}>
            {w.loadStyles(number(page.sheets.length))}
          </button>
        )}
      </p>
      <Problem error={sheets.error} />
      <iframe
        key={css.length}
        ref={frame}
        class="preview"
        sandbox="allow-same-origin"
        title={w.preview}
        onLoad={dress}
        srcdoc={`<!doctype html><meta name="color-scheme" content="light">${page.body}`}
      />
    </div>
  );
}

/** A style sheet, fetched by the server. One that cannot be had is empty: the page is shown without it. */
async function sheetOf(url: string): Promise<string> {
  const body = { url, formats: ["text"], wait: 20, policy: { retries: 0 } } as ScrapeCall;
  const run = (await api.call("scrape", { body }).catch(() => null)) as { result?: { text?: string | null } } | null;
  return run?.result?.text ?? "";
}

function put(frame: HTMLIFrameElement, css: string, mark: string): void {
  const page = frame.contentDocument!;
  const Sheet = (frame.contentWindow as unknown as { CSSStyleSheet: typeof CSSStyleSheet }).CSSStyleSheet;
  const sheet = new Sheet();
  sheet.replaceSync(quietStyles(css));
  page.adoptedStyleSheets = [sheet];
  for (const one of page.querySelectorAll<HTMLElement>("[data-style]"))
    one.style.cssText = quietStyles(one.dataset.style ?? "");
  if (mark) show(page, mark);
}

/** Mark the first place where a value stands. */
function show(page: Document, value: string): void {
  const texts = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const at = node.textContent!.indexOf(value);
    if (at < 0) continue;
    const range = page.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + value.length);
    const found = page.createElement("mark");
    range.surroundContents(found);
    found.style.cssText = "background: #fde68a; color: #1c1e21; outline: 2px solid #b45309";
    found.scrollIntoView({ block: "center" });
    return;
  }
}
