/** Keys: who may call, and what; a new key's secret is shown once. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { Copy, Empty, Field, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Confirm, Dialog } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { lasts, useWords, words } from "#/words";
import type { KeyCall, KeyDocument, NewKeyDocument, Role } from "#client";

const own = words(
  {
    title: "Keys",
    about: "Who may call this server, and what they may do.",
    none: "No keys yet",
    noneAbout: "While `auth.mode` is off, nobody is asked for one.",
    new: "New key",
    make: "Make key",
    name: "Name",
    role: "Role",
    days: "Days until it ends",
    daysHint: "Empty: never",
    scrapers: "Scrapers that it may call",
    scrapersHint: "Patterns with commas, as shop/*; empty: all",
    state: "Status",
    usable: "works",
    ended: "ended",
    revoked: "revoked",
    used: "Last used",
    expires: "Ends",
    never: "never",
    secretTitle: "Your new key",
    secretAbout: "Copy it now: it is shown this once.",
    revoke: "Revoke",
    revokeAsk: "Revoke this key?",
    revokeAbout: (name: string) =>
      `Calls with ${name} are refused from now on, and its sessions end. This cannot be undone.`,
    role_client: "client: calls scrapers, sees its own",
    role_viewer: "viewer: sees everything, changes nothing",
    role_operator: "operator: everything but keys and secrets",
    role_admin: "admin: everything",
  },
  {
    title: "키",
    about: "누가 이 서버를 호출할 수 있고 무엇을 할 수 있는지입니다.",
    none: "아직 키가 없습니다",
    noneAbout: "`auth.mode`가 꺼져 있으면 키를 묻지 않습니다.",
    new: "새 키",
    make: "키 만들기",
    name: "이름",
    role: "역할",
    days: "만료까지 일수",
    daysHint: "비워 두면 만료 없음",
    scrapers: "호출할 수 있는 스크레이퍼",
    scrapersHint: "쉼표로 나눈 패턴, 예: shop/*. 비워 두면 모두",
    state: "상태",
    usable: "사용 가능",
    ended: "끝남",
    revoked: "폐기됨",
    used: "마지막 사용",
    expires: "만료",
    never: "없음",
    secretTitle: "새 키",
    secretAbout: "지금 복사하세요. 이번 한 번만 보여 줍니다.",
    revoke: "폐기",
    revokeAsk: "이 키를 폐기할까요?",
    revokeAbout: (name: string) => `지금부터 ${name}(으)로 한 호출은 거부되고 세션도 끝납니다. 되돌릴 수 없습니다.`,
    role_client: "client: 스크레이퍼 호출, 자기 것만 보기",
    role_viewer: "viewer: 모두 보기, 변경 불가",
    role_operator: "operator: 키와 비밀 값을 뺀 모든 것",
    role_admin: "admin: 모든 것",
  },
);
const ROLES: Role[] = ["client", "viewer", "operator", "admin"];

export default function Keys() {
  const w = useWords(own);
  const found = useCall("list_keys", {}, { every: 10 });
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<NewKeyDocument | null>(null);
  const [asking, setAsking] = useState<KeyDocument | null>(null);
  const columns: Column<KeyDocument>[] = [
    { id: "name", head: w.name, width: "minmax(0, 2fr)", cell: (one) => one.name },
    { id: "role", head: w.role, width: "100px", cell: (one) => one.role },
    {
      id: "state",
      head: w.state,
      width: "130px",
      cell: (one) => (
        <Status of={one.usable ? "ok" : "cancelled"}>
          {one.usable ? w.usable : one.revoked_at ? w.revoked : w.ended}
        </Status>
      ),
    },
    {
      id: "scrapers",
      head: w.scrapers,
      width: "minmax(0, 1.4fr)",
      line: 0,
      cell: (one) => one.scrapers.join(", ") || "*",
    },
    {
      id: "expires",
      head: w.expires,
      width: "120px",
      end: true,
      line: 0,
      cell: (one) => (one.expires_at ? lasts((new Date(one.expires_at).getTime() - Date.now()) / 1000) : w.never),
    },
    { id: "used", head: w.used, width: "110px", end: true, cell: (one) => <Time at={one.last_used_at} /> },
    {
      id: "act",
      head: "",
      width: "90px",
      end: true,
      cell: (one) =>
        one.usable ? (
          <button type="button" class="small" onClick={() => setAsking(one)}>
            {w.revoke}
          </button>
        ) : (
          ""
        ),
    },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        <button type="button" class="main" onClick={() => setMaking(true)}>
          {w.new}
        </button>
      </Head>
      <Problem error={found.error} />
      {found.isPending ? (
        <Skeleton />
      ) : found.data?.keys.length ? (
        <Table label={w.title} columns={columns} rows={rowsOf(found.data.keys)} id={(one) => one.id} />
      ) : (
        <Empty title={w.none}>{w.noneAbout}</Empty>
      )}
      {making && (
        <NewKey
          close={() => setMaking(false)}
          done={(key) => {
            setMaking(false);
            setMade(key);
          }}
        />
      )}
      {made && (
        <Dialog title={w.secretTitle} close={() => setMade(null)}>
          <p>{w.secretAbout}</p>
          <pre class="sample" tabIndex={0}>
            {made.secret}
          </pre>
          <footer>
            <Copy text={made.secret} />
          </footer>
        </Dialog>
      )}
      {asking && (
        <Confirm
          title={w.revokeAsk}
          verb={w.revoke}
          close={() => setAsking(null)}
          act={() =>
            api
              .call("revoke_key", { path: { key_id: asking.id } })
              .then(() => cache.invalidateQueries({ queryKey: ["list_keys"] }))
          }
        >
          {w.revokeAbout(asking.name)}
        </Confirm>
      )}
    </>
  );
}

function NewKey({ close, done }: { close: () => void; done: (key: NewKeyDocument) => void }) {
  const w = useWords(own);
  const [form, setForm] = useState<Record<string, string>>({ role: "client" });
  const set = (some: Record<string, string>) => setForm((now) => ({ ...now, ...some }));
  const make = useAction(
    () => {
      const scrapers = (form.scrapers ?? "")
        .split(",")
        .map((one) => one.trim())
        .filter(Boolean);
      const call: KeyCall = {
        name: form.name ?? "",
        role: form.role as Role,
        scrapers,
        expires_days: form.days ? Number(form.days) : undefined,
      };
      return api.call("create_key", { body: call });
    },
    { touches: ["list_keys"], done },
  );
  return (
    <Dialog title={w.new} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate(undefined);
        }}
      >
        <Field label={w.name}>
          {(id) => (
            <input
              id={id}
              required
              value={form.name ?? ""}
              onInput={(event) => set({ name: event.currentTarget.value })}
            />
          )}
        </Field>
        <Field label={w.role}>
          {(id) => (
            <select id={id} value={form.role} onChange={(event) => set({ role: event.currentTarget.value })}>
              {ROLES.map((one) => (
                <option key={one} value={one}>
                  {w[`role_${one}`]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={w.days} hint={w.daysHint}>
          {(id) => (
            <input
              id={id}
              type="number"
              min="1"
              value={form.days ?? ""}
              onInput={(event) => set({ days: event.currentTarget.value })}
            />
          )}
        </Field>
        <Field label={w.scrapers} hint={w.scrapersHint}>
          {(id) => (
            <input
              id={id}
              value={form.scrapers ?? ""}
              onInput={(event) => set({ scrapers: event.currentTarget.value })}
            />
          )}
        </Field>
        <Problem error={make.error} />
        <footer>
          <button type="submit" class="main" disabled={make.isPending}>
            {w.make}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
