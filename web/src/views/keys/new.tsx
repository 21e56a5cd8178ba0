/** The form of a new key. */

import { useState } from "preact/hooks";
import { api, useAction } from "#/api/client";
import { Field, Problem } from "#/kit/base";
import { Dialog } from "#/kit/dialog";
import { useWords } from "#/words";
import type { NewKeyDocument, Role } from "#client";
import { limitsOf } from "./limits";
import { own } from "./words";

const ROLES: Role[] = ["client", "viewer", "operator", "admin"];
const BUDGET = ["runs", "fetches", "mb", "direct_mb", "datacenter_mb", "residential_mb", "browser_seconds"] as const;
const DAYS = [7, 30, 90, 365];

export function NewKey({
  first,
  close,
  made,
}: {
  first: boolean;
  close: () => void;
  made: (key: NewKeyDocument) => Promise<void>;
}) {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>(first ? "admin" : "client");
  const [client, setClient] = useState("");
  const [scrapers, setScrapers] = useState("");
  const [days, setDays] = useState("");
  const [limits, setLimits] = useState<Record<string, string>>({});
  const make = useAction(
    async () => {
      const key = await api.call("create_key", {
        body: {
          name,
          role,
          client: client || null,
          scrapers: scrapers.split(/[\s,]+/).filter(Boolean),
          expires_days: days ? Number(days) : null,
          limits: limitsOf(limits),
        },
      });
      await made(key);
    },
    { touches: ["list_keys"] },
  );
  const limit = (path: string, label: string) => (
    <Field key={path} label={label}>
      {(id) => (
        <input
          id={id}
          type="number"
          min="0"
          step="any"
          value={limits[path] ?? ""}
          onInput={(event) => setLimits({ ...limits, [path]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
  return (
    <Dialog title={w.make} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate(undefined);
        }}
      >
        {first && <p class="lost">{w.first}</p>}
        <Field label={w.name} hint={w.nameHint}>
          {(id) => (
            <input
              id={id}
              required
              maxLength={64}
              value={name}
              autoFocus
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <fieldset class="roles" disabled={first}>
          <legend>{w.role}</legend>
          {ROLES.map((each) => (
            <label key={each} class="check">
              <input type="radio" name="role" checked={role === each} onChange={() => setRole(each)} />
              <span>
                {each} <span class="muted">· {words[`role_${each}`]}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Field label={w.expires}>
          {(id) => (
            <select id={id} value={days} onChange={(event) => setDays(event.currentTarget.value)}>
              <option value="">{w.forEver}</option>
              {DAYS.map((each) => (
                <option key={each} value={each}>
                  {w.days(String(each))}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={w.scrapers} hint={w.scrapersHint}>
          {(id) => <input id={id} value={scrapers} onInput={(event) => setScrapers(event.currentTarget.value)} />}
        </Field>
        <details class="how">
          <summary>
            {w.client}, {w.limits.toLowerCase()}
          </summary>
          <div class="stack">
            <Field label={w.client} hint={w.clientHint}>
              {(id) => <input id={id} value={client} onInput={(event) => setClient(event.currentTarget.value)} />}
            </Field>
            <p class="muted">{w.limitsAbout}</p>
            <div class="pair">
              {limit("rate", w.rate)}
              {limit("concurrency", w.concurrency)}
            </div>
            {(["daily", "monthly"] as const).map((period) => (
              <fieldset key={period}>
                <legend>{words[period]}</legend>
                <div class="pair">{BUDGET.map((each) => limit(`${period}.${each}`, words[each]!))}</div>
              </fieldset>
            ))}
          </div>
        </details>
        <Problem error={make.error} />
        <footer>
          <button type="submit" class="main" disabled={make.isPending || !name}>
            {w.make}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
