/** The form of a pool, new or changed. Secrets are written and never read. */

import { useState } from "preact/hooks";
import { api, useAction } from "#/api/client";
import { Field, Problem } from "#/kit/base";
import { Dialog, note } from "#/kit/dialog";
import { useWords } from "#/words";
import type { PoolCall, PoolDocument } from "#client";
import { own } from "./words";

const CLASSES = ["datacenter", "residential", "unlocker"] as const;
const ROTATIONS = ["request", "session", "site"] as const;

export function PoolForm({ of, close }: { of?: PoolDocument; close: () => void }) {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const [name, setName] = useState(of?.name ?? "");
  const [urls, setUrls] = useState("");
  const [call, setCall] = useState<PoolCall>({
    kind: of?.kind ?? "list",
    proxy_class: of?.proxy_class ?? "datacenter",
    rotation: of?.rotation ?? "request",
    country: of?.country ?? "",
    cooldown_seconds: of?.cooldown_seconds ?? 60,
    customer: of?.customer ?? "",
    zone: of?.zone ?? "",
    host: of?.kind === "brightdata" ? (of.endpoints[0] ?? "") : "",
    exits: of?.kind === "brightdata" ? of.exits : 20,
    ca_file: of?.ca_file ?? null,
  });
  const save = useAction(
    () => {
      const given = urls.split(/\s+/).filter(Boolean);
      return api.call("put_proxies", { path: { name }, body: { ...call, urls: given.length ? given : null } });
    },
    {
      touches: ["list_proxies"],
      done: () => {
        note(w.saved(name));
        close();
      },
    },
  );
  const text = (field: "host" | "customer" | "zone" | "country", label: string, hint?: string) => (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          value={call[field] ?? ""}
          onInput={(event) => setCall({ ...call, [field]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
  const choice = <T extends string>(
    field: "kind" | "proxy_class" | "rotation",
    label: string,
    options: readonly T[],
    prefix = "",
  ) => (
    <Field label={label}>
      {(id) => (
        <select
          id={id}
          value={call[field]}
          onChange={(event) => setCall({ ...call, [field]: event.currentTarget.value as never })}
        >
          {options.map((each) => (
            <option key={each} value={each}>
              {words[prefix + each]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  const count = (field: "exits" | "cooldown_seconds", label: string) => (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          type="number"
          min="1"
          value={call[field]}
          onInput={(event) => setCall({ ...call, [field]: Number(event.currentTarget.value) })}
        />
      )}
    </Field>
  );
  return (
    <Dialog title={of ? `${w.change}: ${of.name}` : w.add} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate(undefined);
        }}
      >
        {!of && (
          <Field label={w.name}>
            {(id) => (
              <input id={id} required autoFocus value={name} onInput={(event) => setName(event.currentTarget.value)} />
            )}
          </Field>
        )}
        <div class="pair">
          {choice("kind", w.kind, ["list", "brightdata"])}
          {choice("proxy_class", w.cls, CLASSES)}
        </div>
        {call.kind === "list" ? (
          <Field label={w.urls} hint={of ? `${w.urlsHint} ${w.urlsKeep}` : w.urlsHint}>
            {(id) => (
              <textarea
                id={id}
                rows={4}
                required={!of}
                value={urls}
                onInput={(event) => setUrls(event.currentTarget.value)}
              />
            )}
          </Field>
        ) : (
          <div class="pair">
            {text("customer", w.customer)}
            {text("zone", w.zone)}
            <Field label={w.password} hint={of && w.passwordKeep}>
              {(id) => (
                <input
                  id={id}
                  type="password"
                  autocomplete="off"
                  required={!of}
                  value={call.password ?? ""}
                  onInput={(event) => setCall({ ...call, password: event.currentTarget.value || null })}
                />
              )}
            </Field>
            {text("host", w.host, w.hostHint)}
            {count("exits", w.exitCount)}
          </div>
        )}
        <div class="pair">
          {choice("rotation", w.rotation, ROTATIONS, "rotation_")}
          {text("country", w.country, w.countryHint)}
          {count("cooldown_seconds", w.cooldown)}
        </div>
        <Problem error={save.error} />
        <footer>
          <button type="submit" class="main" disabled={save.isPending || !name}>
            {w.save}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
