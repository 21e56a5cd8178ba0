/** The rules of a site. What is left empty is as the settings say. */

import { useState } from "preact/hooks";
import { api, useAction } from "#/api/client";
import { Field, Problem } from "#/kit/base";
import { Dialog, note } from "#/kit/dialog";
import { useWords } from "#/words";
import type { SiteCall, SiteDocument } from "#client";
import { rulesOf } from "./rules";
import { own } from "./words";

type Count = "rate" | "burst" | "concurrency" | "min_rate" | "breaker_failures" | "breaker_ratio" | "breaker_seconds";

export function RulesForm({ of, close, saved }: { of: SiteDocument; close: () => void; saved: () => void }) {
  const w = useWords(own);
  const [call, setCall] = useState<SiteCall>(rulesOf(of));
  const save = useAction(() => api.call("put_site", { path: { site: of.site }, body: call }), {
    done: () => {
      saved();
      note(w.saved);
      close();
    },
  });
  const set = (name: keyof SiteCall, value: unknown) => {
    const { [name]: _, ...rest } = call;
    setCall(value === "" || value === undefined ? rest : { ...rest, [name]: value });
  };
  const count = (name: Count, label: string, step = "any", hint?: string) => (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          type="number"
          min="0"
          step={step}
          placeholder={String(of.limits[name])}
          value={call[name] ?? ""}
          onInput={(event) => set(name, event.currentTarget.value === "" ? "" : Number(event.currentTarget.value))}
        />
      )}
    </Field>
  );
  return (
    <Dialog title={`${w.change}: ${of.site}`} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate(undefined);
        }}
      >
        <div class="pair">
          {count("rate", w.requestsASecond, "any", `0: ${w.noLimit}`)}
          {count("concurrency", w.concurrency, "1", `0: ${w.any}`)}
          {count("burst", w.burst, "1")}
          <Field label={w.robots}>
            {(id) => (
              <select id={id} value={call.robots ?? ""} onChange={(event) => set("robots", event.currentTarget.value)}>
                <option value="">{w.asSettings}</option>
                <option value="obey">{w.obey}</option>
                <option value="ignore">{w.ignore}</option>
              </select>
            )}
          </Field>
          <Field label={w.adapt} hint={w.adaptHint}>
            {(id) => (
              <select
                id={id}
                value={call.adapt === undefined ? "" : String(call.adapt)}
                onChange={(event) => set("adapt", event.currentTarget.value && event.currentTarget.value === "true")}
              >
                <option value="">{w.asSettings}</option>
                <option value="true">{w.yes}</option>
                <option value="false">{w.no}</option>
              </select>
            )}
          </Field>
          {count("min_rate", w.minRate)}
          {count("breaker_failures", w.breakerFailures, "1")}
          {count("breaker_ratio", w.breakerRatio)}
          {count("breaker_seconds", w.breakerSeconds)}
        </div>
        <Field label={w.note}>
          {(id) => (
            <input
              id={id}
              maxLength={2000}
              value={call.note ?? ""}
              onInput={(event) => set("note", event.currentTarget.value)}
            />
          )}
        </Field>
        <Problem error={save.error} />
        <footer>
          <button type="submit" class="main" disabled={save.isPending}>
            {w.save}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
