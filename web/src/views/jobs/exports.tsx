/** Files made of a job: what there is, how far each is, and new ones. */

import { useState } from "preact/hooks";
import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Bar, Empty, Field, Problem, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { bytes, number, useWords } from "#/words";
import type { ExportCall, ExportDocument, JobDocument, ResultsDocument } from "#client";
import { own } from "./words";

const MOST_PARTS = 50;
export const TYPES = ["full", "records", "pages", "seo", "links", "diff"] as const;
export const FORMATS = ["csv", "xlsx", "json", "jsonl", "parquet"] as const;

export function Exports({ job }: { job: JobDocument }) {
  const w = useWords(own);
  const [type, setType] = useState<ExportCall["type"]>("full");
  const [format, setFormat] = useState<ExportCall["format"]>("csv");
  const path = { job_id: job.id };
  const found = useCall("list_exports", { path }, { every: 2 });
  const make = useAction(() => api.call("create_export", { path, body: { type, format } }), {
    touches: ["list_exports"],
  });
  const columns: Column<ExportDocument>[] = [
    {
      id: "name",
      head: w.exportType,
      width: "minmax(0, 2fr)",
      cell: (one) => `${w[`type_${one.type as "full"}`] ?? one.type} · ${one.format}`,
    },
    { id: "state", head: w.status, width: "110px", cell: (one) => <Status of={one.state} /> },
    {
      id: "progress",
      head: w.progress,
      width: "minmax(0, 1fr)",
      cell: (one) =>
        one.state === "done" ? (
          `${w.rows(number(one.rows))} · ${bytes(one.bytes)}`
        ) : one.error ? (
          one.error
        ) : (
          <Bar
            label={w.progress}
            parts={[
              { tone: "busy", value: one.progress, name: "" },
              { tone: "off", value: 1 - one.progress, name: "" },
            ]}
          />
        ),
    },
    { id: "at", head: w.created, width: "110px", end: true, line: 0, cell: (one) => <Time at={one.created_at} /> },
    {
      id: "get",
      head: "",
      width: "110px",
      end: true,
      cell: (one) =>
        one.links.download ? (
          <a href={one.links.download} download={one.filename}>
            {w.download}
          </a>
        ) : (
          ""
        ),
    },
  ];
  return (
    <div class="stack">
      {may("create_export") && (
        <form
          class="line"
          onSubmit={(event) => {
            event.preventDefault();
            make.mutate(undefined);
          }}
        >
          <Field label={w.exportType}>
            {(id) => (
              <select
                id={id}
                value={type}
                onChange={(event) => setType(event.currentTarget.value as ExportCall["type"])}
              >
                {TYPES.map((one) => (
                  <option key={one} value={one}>
                    {w[`type_${one}`]}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label={w.exportFormat}>
            {(id) => (
              <select
                id={id}
                value={format}
                onChange={(event) => setFormat(event.currentTarget.value as ExportCall["format"])}
              >
                {FORMATS.map((one) => (
                  <option key={one} value={one}>
                    {one.toUpperCase()}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <button type="submit" class="low" disabled={make.isPending}>
            {w.exportNew}
          </button>
        </form>
      )}
      <Problem error={make.error ?? found.error} />
      {found.data?.exports.length ? (
        <Table
          label={w.tabExports}
          columns={columns}
          rows={rowsOf([...found.data.exports].reverse())}
          id={(one) => one.id}
        />
      ) : (
        <Empty title={w.exportNone}>{may("create_export") && w.exportNoneAbout}</Empty>
      )}
      <Manifests job={job} />
    </div>
  );
}

/** The lists of items for programs: a link to each part. */
function Manifests({ job }: { job: JobDocument }) {
  const w = useWords(own);
  const isOver = ["completed", "cancelled"].includes(job.status) && !job.files_pending;
  const found = useCall("get_results", { path: { job_id: job.id }, query: {} }, { enabled: isOver });
  const manifests = Object.entries((found.data as ResultsDocument | undefined)?.manifests ?? {});
  if (manifests.length === 0) return null;
  return (
    <section class="panel">
      <h2>{w.manifests}</h2>
      <p class="muted">{w.manifestsAbout}</p>
      <ul class="files">
        {manifests.map(([name, one]) => (
          <li key={name}>
            {w[`manifest_${name as "full"}`] ?? name} · {w.partsN(number(one.parts.length))}:{" "}
            {one.parts.slice(0, MOST_PARTS).map((part) => (
              <a key={part.part} href={part.href} download={`${job.id}-${name}-${part.part}.json`}>
                {number(part.part)}{" "}
              </a>
            ))}
            {one.parts.length > MOST_PARTS && "…"}
          </li>
        ))}
      </ul>
    </section>
  );
}
