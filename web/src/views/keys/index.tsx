/** Keys: who may call, made, rotated and revoked. What is chosen stands in the address. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may, session, signIn } from "#/api/session";
import { store, useStore } from "#/api/store";
import { useAddress } from "#/kit/address";
import { Chips, Copy, Empty, Facts, Field, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Confirm, Dialog, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, useWords } from "#/words";
import type { ClientLimits, KeyDocument, NewKeyDocument } from "#client";
import { NewKey } from "./new";
import { own } from "./words";

const DAY = 86_400;

/** The key whose secret is shown. Not of the view: signing in with it may draw the page anew. */
const fresh = store<NewKeyDocument | null>(null);

function State({ of }: { of: KeyDocument }) {
  const w = useWords(own);
  if (of.usable)
    return <Status of={of.replaced_by ? "degraded" : "ok"}>{of.replaced_by ? w.is_replaced : w.is_usable}</Status>;
  return <Status of="cancelled">{of.revoked_at ? w.is_revoked : of.replaced_by ? w.is_replaced : w.is_ended}</Status>;
}

export default function Keys() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const found = useCall("list_keys", {}, { every: 10 });
  const made = useStore(fresh);
  const all = found.data?.keys ?? [];
  const shown = query.which === "all" ? all : all.filter((key) => key.usable);
  const now = session.get();
  const first = now.state === "in" && !now.who.auth_required && !all.some((key) => key.usable);
  const chosen = all.find((key) => key.id === query.key);
  const columns: Column<KeyDocument>[] = [
    { id: "name", head: w.name, width: "minmax(120px, 2fr)", cell: (key) => key.name },
    { id: "state", head: w.state, width: "110px", cell: (key) => <State of={key} /> },
    { id: "role", head: w.role, width: "90px", cell: (key) => key.role },
    { id: "client", head: w.client, width: "minmax(0, 1fr)", cell: (key) => key.client },
    {
      id: "scrapers",
      head: w.scrapers,
      width: "minmax(0, 1fr)",
      line: 0,
      cell: (key) => key.scrapers.join(" ") || w.every,
    },
    {
      id: "used",
      head: w.used,
      label: w.used,
      width: "110px",
      end: true,
      cell: (key) => (key.last_used_at ? <Time at={key.last_used_at} /> : w.never),
    },
    {
      id: "ends",
      head: w.ends,
      width: "110px",
      end: true,
      line: 0,
      cell: (key) => (key.expires_at ? <Time at={key.expires_at} /> : w.never),
    },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        {may("create_key") && (
          <button type="button" class="main" onClick={() => change({ new: "1" })}>
            {w.make}
          </button>
        )}
      </Head>
      {all.length > 0 && (
        <div class="line filters">
          <Chips
            label={w.which}
            value={query.which ?? ""}
            options={[
              ["", w.usable],
              ["all", w.all],
            ]}
            choose={(which) => change({ which })}
          />
        </div>
      )}
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : shown.length === 0 ? (
        <Empty title={all.length ? w.noneFit : w.none}>{w.noneAbout}</Empty>
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(shown)}
          id={(key) => key.id}
          href={(key) =>
            `/keys?${new URLSearchParams({ ...(query.which ? { which: query.which } : {}), key: key.id })}`
          }
          selected={query.key}
          most={20}
        />
      )}
      {chosen && !made && <OneKey of={chosen} close={() => change({ key: null })} made={fresh.set} />}
      {query.new && !made && found.data && (
        <NewKey
          first={first}
          close={() => change({ new: null })}
          made={async (key) => {
            fresh.set(key);
            if (first) await signIn(key.secret);
            void found.refetch();
          }}
        />
      )}
      {made && (
        <Secret
          of={made}
          close={() => {
            fresh.set(null);
            change({ new: null, key: null });
          }}
        />
      )}
    </>
  );
}

/** The one time that a secret is shown. */
function Secret({ of, close }: { of: NewKeyDocument; close: () => void }) {
  const w = useWords(own);
  const call = `curl -H "Authorization: Bearer $KEY" ${location.origin}/api/identity`;
  return (
    <Dialog title={w.secretTitle} close={close}>
      <div class="stack">
        <p>
          <strong>{of.name}</strong> · {of.role}
        </p>
        <p>{w.secretAbout}</p>
        <div class="line">
          <input
            class="mono"
            aria-label={w.secret}
            readOnly
            value={of.secret}
            onFocus={(event) => event.currentTarget.select()}
          />
          <Copy text={of.secret} />
        </div>
        <div>
          <p class="muted">{w.howTo}</p>
          <pre>{call}</pre>
        </div>
      </div>
      <footer>
        <button type="button" class="main" onClick={close}>
          {w.done}
        </button>
      </footer>
    </Dialog>
  );
}

function OneKey({ of, close, made }: { of: KeyDocument; close: () => void; made: (key: NewKeyDocument) => void }) {
  const w = useWords(own);
  const [asking, setAsking] = useState<"rotate" | "revoke" | null>(null);
  if (asking === "revoke")
    return (
      <Confirm
        title={w.revokeAsk(of.name)}
        verb={w.revoke}
        close={close}
        act={async () => {
          await api.call("revoke_key", { path: { key_id: of.id } });
          note(w.revoked(of.name));
          void cache.invalidateQueries({ queryKey: ["list_keys"] });
        }}
      >
        {w.revokeAbout}
      </Confirm>
    );
  if (asking === "rotate") return <Rotate of={of} close={close} made={made} />;
  return (
    <Dialog title={of.name} close={close}>
      <Facts
        facts={[
          [w.state, <State of={of} />],
          [w.role, `${of.role} · ${(w as unknown as Record<string, string>)[`role_${of.role}`]}`],
          [w.client, of.client],
          [w.scrapers, of.scrapers.join(" ") || w.every],
          [w.limits, <Limits of={of.limits} />],
          [w.made, <Time at={of.created_at} />],
          [w.used, of.last_used_at ? <Time at={of.last_used_at} /> : w.never],
          [w.ends, of.expires_at ? <Time at={of.expires_at} /> : w.never],
          [w.id, <code>{of.id}</code>],
        ]}
      />
      {of.usable && (
        <footer>
          <button type="button" onClick={() => setAsking("rotate")}>
            {w.rotate}
          </button>
          <button type="button" class="danger" onClick={() => setAsking("revoke")}>
            {w.revoke}
          </button>
        </footer>
      )}
    </Dialog>
  );
}

function Rotate({ of, close, made }: { of: KeyDocument; close: () => void; made: (key: NewKeyDocument) => void }) {
  const w = useWords(own);
  const [seconds, setSeconds] = useState(DAY);
  const rotate = useAction(
    () => api.call("rotate_key", { path: { key_id: of.id }, body: { overlap_seconds: seconds } }),
    { touches: ["list_keys"], done: made },
  );
  return (
    <Dialog title={`${w.rotate}: ${of.name}`} close={close}>
      <div class="stack">
        <p>{w.rotateAbout}</p>
        <Field label={w.overlap}>
          {(id) => (
            <select id={id} value={seconds} onChange={(event) => setSeconds(Number(event.currentTarget.value))}>
              <option value={0}>{w.atOnce}</option>
              <option value={3600}>{w.hours("1")}</option>
              <option value={DAY}>{w.hours("24")}</option>
              <option value={7 * DAY}>{w.days("7")}</option>
              <option value={30 * DAY}>{w.days("30")}</option>
            </select>
          )}
        </Field>
        <Problem error={rotate.error} />
      </div>
      <footer>
        <button type="button" class="main" disabled={rotate.isPending} onClick={() => rotate.mutate(undefined)}>
          {w.rotate}
        </button>
      </footer>
    </Dialog>
  );
}

function Limits({ of }: { of: ClientLimits }) {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const told: string[] = [];
  if (of.rate) told.push(`${w.rate}: ${number(of.rate, 2)}`);
  if (of.concurrency) told.push(`${w.concurrency}: ${number(of.concurrency)}`);
  for (const period of ["daily", "monthly"] as const)
    for (const [name, most] of Object.entries(of[period]))
      if (most) told.push(`${words[period]}: ${number(most)} ${words[name]!.toLowerCase()}`);
  return told.length ? told.map((each) => <div key={each}>{each}</div>) : w.noLimits;
}
