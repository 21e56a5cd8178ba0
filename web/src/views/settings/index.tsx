/** Settings: every one that is in force, where its value came from and what it does. Read only. */

import { useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Copy, Empty, Head, Problem, Said, Skeleton } from "#/kit/base";
import { number, useWords } from "#/words";
import type { SettingDocument } from "#client";
import { inSections, shownValue } from "./sections";
import { own } from "./words";

export default function Settings() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const found = useCall("get_settings", {});
  const all = found.data?.settings ?? [];
  const isSet = (one: SettingDocument) => one.source !== "default";
  const onlySet = query.show === "set";
  const search = (query.q ?? "").toLowerCase();
  const rows = all.filter(
    (one) =>
      (!onlySet || isSet(one)) &&
      `${one.key} ${one.environment} ${one.meaning} ${shownValue(one.value)}`.toLowerCase().includes(search),
  );
  return (
    <>
      <Head title={w.title} about={w.about} />
      <Problem error={found.error} again={() => found.refetch()} />
      <div class="line filters">
        <Chips
          label={w.which}
          value={onlySet ? "set" : ""}
          options={[
            ["", `${w.all} ${number(all.length)}`],
            ["set", `${w.set} ${number(all.filter(isSet).length)}`],
          ]}
          choose={(show) => change({ show })}
        />
        <input
          class="wide-input"
          type="search"
          aria-label={w.search}
          placeholder={w.search}
          value={query.q ?? ""}
          onInput={(event) => change({ q: event.currentTarget.value })}
        />
      </div>
      {found.isPending ? (
        <Skeleton rows={12} />
      ) : rows.length === 0 ? (
        <Empty title={onlySet && !search ? w.noneSet : w.none}>{onlySet && !search && w.noneSetAbout}</Empty>
      ) : (
        <div class="stack">
          {inSections(rows).map(([section, some]) => (
            <section key={section} class="panel settings" aria-label={section || w.top}>
              <h2>{section || w.top}</h2>
              <dl>
                {some.map((one) => (
                  <Setting key={one.key} one={one} />
                ))}
              </dl>
            </section>
          ))}
        </div>
      )}
    </>
  );
}

function Setting({ one }: { one: SettingDocument }) {
  const w = useWords(own);
  const [value, standard] = [shownValue(one.value), shownValue(one.default)];
  const isSet = one.source !== "default";
  return (
    <div>
      <dt>
        <code>{one.key.split(".").at(-1)}</code>
        <Copy text={one.environment}>{w.variable}</Copy>
      </dt>
      <dd>
        <strong class="mono">{value || <span class="muted">{w.empty}</span>}</strong>
        <span class={isSet ? "tag set" : "tag"}>{isSet ? one.source : w.default}</span>
        {isSet && standard !== value && <small class="muted">{w.otherwise(standard || w.empty)}</small>}
        <p class="muted">
          <Said text={one.meaning} />
        </p>
      </dd>
    </div>
  );
}
