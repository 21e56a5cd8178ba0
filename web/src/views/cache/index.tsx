/** Cache: what is kept, how often it helps, and forgetting it. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Chips, Empty, Facts, Field, Head, Problem, Skeleton } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { bytes, lasts, number, percent, useWords } from "#/words";
import type { CacheDocument, InvalidateCall, SharedDocument } from "#client";
import { own } from "./words";

export default function Cache() {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const found = useCall("get_cache", {}, { every: 5 });
  const kept = found.data;
  return (
    <>
      <Head title={w.title} about={w.about} />
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : (
        kept && (
          <div class="stack">
            <div class="grid">
              <section class="panel">
                <h2>{w.shared}</h2>
                {kept.shared ? <Shared of={kept.shared} /> : <p class="muted">{w.noShared}</p>}
              </section>
              <section class="panel">
                <h2>{w.mode}</h2>
                <Facts
                  facts={[
                    [w.mode, words[`mode_${kept.mode}`]],
                    [w.maxAge, kept.max_age_seconds ? lasts(kept.max_age_seconds) : w.notServed],
                    [w.memory, bytes(kept.memory_limit_bytes)],
                  ]}
                />
              </section>
              {may("invalidate_cache") && <Clear kept={kept} />}
              {may("warm_cache") && <Warm />}
            </div>
            {kept.shared?.pages === 0 && <Empty title={w.empty}>{w.emptyAbout}</Empty>}
          </div>
        )
      )}
    </>
  );
}

function Shared({ of }: { of: SharedDocument }) {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const asked = of.hits + of.misses;
  return (
    <Facts
      facts={[
        [w.kind, words[`kind_${of.kind}`]],
        [w.pages, number(of.pages)],
        [
          w.size,
          <span class="measure">
            <meter min={0} max={of.limit_bytes} value={of.bytes} aria-label={w.size} />
            {w.of(bytes(of.bytes), bytes(of.limit_bytes))}
          </span>,
        ],
        [w.share, percent(asked ? of.hits / asked : null)],
        [w.hits, number(of.hits)],
        [w.misses, number(of.misses)],
        [w.evicted, number(of.evicted)],
      ]}
    />
  );
}

function Clear({ kept }: { kept: CacheDocument }) {
  const w = useWords(own);
  const [which, setWhich] = useState<"url" | "site" | "all">("url");
  const [text, setText] = useState("");
  const [asking, setAsking] = useState(false);
  const act = async () => {
    const body: InvalidateCall = which === "all" ? { all: true } : { [which]: text.trim() };
    const { dropped } = await api.call("invalidate_cache", { body });
    note(w.done(number(dropped)));
    void cache.invalidateQueries({ queryKey: ["get_cache"] });
  };
  return (
    <section class="panel">
      <h2>{w.clear}</h2>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setAsking(true);
        }}
      >
        <p class="muted">{w.clearAbout}</p>
        <Chips
          label={w.which}
          value={which}
          options={[
            ["url", w.clearUrl],
            ["site", w.clearSite],
            ["all", w.clearAll],
          ]}
          choose={setWhich}
        />
        {which !== "all" && (
          <Field label={w[which]}>
            {(id) => (
              <input
                id={id}
                required
                type={which === "url" ? "url" : "text"}
                placeholder={which === "url" ? "https://shop.example/product/1" : "shop.example"}
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            )}
          </Field>
        )}
        <div class="line">
          <button type="submit">{w.forget}</button>
        </div>
      </form>
      {asking && (
        <Confirm title={w.askTitle} verb={w.forget} close={() => setAsking(false)} act={act}>
          {which === "all"
            ? w.askAll(number(kept.shared?.pages ?? 0), bytes(kept.shared?.bytes ?? 0))
            : w.askSome(text.trim())}
        </Confirm>
      )}
    </section>
  );
}

function Warm() {
  const w = useWords(own);
  const [text, setText] = useState("");
  const [started, setStarted] = useState(0);
  const urls = text.split(/\s+/).filter(Boolean);
  const warm = useAction(() => api.call("warm_cache", { body: { urls } }), {
    touches: ["list_runs", "get_cache"],
    done: () => {
      setStarted(urls.length);
      setText("");
    },
  });
  return (
    <section class="panel">
      <h2>{w.warm}</h2>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          warm.mutate(undefined);
        }}
      >
        <p class="muted">{w.warmAbout}</p>
        <Field label={w.urls}>
          {(id) => (
            <textarea id={id} rows={3} required value={text} onInput={(event) => setText(event.currentTarget.value)} />
          )}
        </Field>
        <Problem error={warm.error} />
        <div class="line">
          <button type="submit" disabled={warm.isPending || urls.length === 0}>
            {w.fetchThem}
          </button>
          {started > 0 && (
            <span class="status good">
              ✔ {w.warmed(number(started))} <a href="/runs">{w.seeRuns}</a>
            </span>
          )}
        </div>
      </form>
    </section>
  );
}
