/** Kept pages: how many there are, and forget some. */

import { useState } from "preact/hooks";
import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Bar, Facts, Field, Head, Problem, Skeleton } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { bytes, lasts, number, percent, useWords, words } from "#/words";

const own = words(
  {
    title: "Cache",
    about: "Pages that are kept, so that the same page is not fetched twice.",
    mode: "Unless a call says otherwise",
    age: "Pages may be as old as",
    kept: "Kept pages",
    used: "Used",
    free: "free",
    hits: "Found",
    evicted: "Removed to make room",
    none: "This server keeps no shared pages: each worker has its own memory.",
    forget: "Forget pages",
    site: "Pages of this site",
    forgetSite: "Forget this site",
    all: "Forget all",
    allAsk: "Forget every kept page?",
    allAbout: (n: string) => `${n} pages are removed. The next calls fetch them from their sites again.`,
    dropped: (n: string) => `${n} pages were forgotten`,
  },
  {
    title: "캐시",
    about: "같은 페이지를 두 번 가져오지 않도록 보관한 페이지입니다.",
    mode: "호출이 정하지 않으면",
    age: "페이지의 최대 나이",
    kept: "보관된 페이지",
    used: "사용",
    free: "남음",
    hits: "찾은 비율",
    evicted: "자리를 위해 지움",
    none: "이 서버는 공유 페이지를 보관하지 않습니다. 워커마다 자기 메모리가 있습니다.",
    forget: "페이지 지우기",
    site: "이 사이트의 페이지",
    forgetSite: "이 사이트 지우기",
    all: "모두 지우기",
    allAsk: "보관된 페이지를 모두 지울까요?",
    allAbout: (n: string) => `페이지 ${n}개를 지웁니다. 다음 호출은 사이트에서 다시 가져옵니다.`,
    dropped: (n: string) => `페이지 ${n}개를 지웠습니다`,
  },
);

export default function Cache() {
  const w = useWords(own);
  const found = useCall("get_cache", {}, { every: 5 });
  const [site, setSite] = useState("");
  const [asking, setAsking] = useState(false);
  const forget = useAction((call: { site?: string; all?: boolean }) => api.call("invalidate_cache", { body: call }), {
    touches: ["get_cache"],
    done: (done) => note(w.dropped(number(done.dropped))),
  });
  const one = found.data;
  if (found.error) return <Problem error={found.error} />;
  if (!one) return <Skeleton />;
  const shared = one.shared;
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="grid">
        <section class="panel">
          <Facts
            facts={[
              [w.mode, one.mode],
              [w.age, lasts(one.max_age_seconds)],
              ...(shared
                ? ([
                    [w.kept, `${number(shared.pages)} · ${bytes(shared.bytes)} (${shared.kind})`],
                    [w.hits, percent(shared.hits + shared.misses ? shared.hits / (shared.hits + shared.misses) : null)],
                    [w.evicted, number(shared.evicted)],
                  ] as [string, string][])
                : []),
            ]}
          />
          {shared ? (
            <Bar
              label={w.used}
              parts={[
                { tone: "busy", value: shared.bytes, name: w.used },
                { tone: "off", value: Math.max(0, shared.limit_bytes - shared.bytes), name: w.free },
              ]}
            />
          ) : (
            <p class="muted">{w.none}</p>
          )}
        </section>
        {may("invalidate_cache") && (
          <section class="panel stack">
            <h2>{w.forget}</h2>
            <form
              class="two"
              onSubmit={(event) => {
                event.preventDefault();
                forget.mutate({ site });
              }}
            >
              <Field label={w.site}>
                {(id) => (
                  <input
                    id={id}
                    required
                    value={site}
                    placeholder="shop.example"
                    onInput={(event) => setSite(event.currentTarget.value)}
                  />
                )}
              </Field>
              <button type="submit" class="low" disabled={forget.isPending}>
                {w.forgetSite}
              </button>
            </form>
            <div>
              <button type="button" onClick={() => setAsking(true)}>
                {w.all}
              </button>
            </div>
            <Problem error={forget.error} />
          </section>
        )}
      </div>
      {asking && (
        <Confirm
          title={w.allAsk}
          verb={w.all}
          close={() => setAsking(false)}
          act={() => forget.mutateAsync({ all: true })}
        >
          {w.allAbout(number(shared?.pages ?? 0))}
        </Confirm>
      )}
    </>
  );
}
