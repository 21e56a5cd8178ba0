/** A table that draws only the rows one sees, so that a million scroll as ten do. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useStore } from "#/api/store";
import { useWords } from "#/words";
import { common } from "#/words/common";
import { narrow } from "./narrow";
import { placed, scrolledHeight, shownRows } from "./window";

export interface Column<Row> {
  id: string;
  head: ComponentChildren;
  cell: (row: Row) => ComponentChildren;
  /** A track of a CSS grid, such as `2fr` or `90px`. */
  width?: string;
  /** Numbers stand at the right. */
  end?: boolean;
  /** Where the cell stands on a narrow screen: the first line, the second, or nowhere. Default: the second. */
  line?: 1 | 2 | 0;
  /** Said before the cell on a narrow screen, where there is no head. */
  label?: string;
}

export interface Rows<Row> {
  count: number;
  /** Undefined: not loaded yet. */
  at: (index: number) => Row | undefined;
  /** Called with the rows that are seen. */
  seen?: (first: number, last: number) => void;
}

export function rowsOf<Row>(rows: Row[], more?: () => unknown): Rows<Row> {
  return {
    count: rows.length,
    at: (index) => rows[index],
    seen: more && ((_first, last) => last >= rows.length - 10 && more()),
  };
}

const ROW = 36;
const NARROW_ROW = 60;

interface Given<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Rows<Row>;
  id: (row: Row) => string;
  /** Where a row leads. */
  href?: (row: Row) => string | undefined;
  selected?: string;
  /** Height at most; default: so many rows, then it scrolls. */
  most?: number;
  /** Pixels that the columns need: where there are fewer, they scroll sideways and the first stays. */
  wide?: number;
}

export function Table<Row>({ label, columns, rows, id, href, selected, most = 16, wide }: Given<Row>) {
  const w = useWords(common);
  const isNarrow = useStore(narrow);
  const row = isNarrow ? NARROW_ROW : ROW;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [high, setHigh] = useState(row * most);
  const whole = scrolledHeight(rows.count, row);
  const [first, last] = shownRows({ top, high, count: rows.count, row });
  const head = useRef<HTMLDivElement>(null);
  const look = useCallback(() => {
    if (!box.current) return;
    setTop(box.current.scrollTop);
    if (head.current) head.current.scrollLeft = box.current.scrollLeft;
  }, []);
  const least = wide && !isNarrow ? { minWidth: `${wide}px` } : {};
  useLayoutEffect(() => {
    if (box.current) setHigh(box.current.clientHeight || row * most);
  }, [row, most, rows.count]);
  useEffect(() => {
    rows.seen?.(first, last);
  });
  /** Up and down from row to row, where rows lead somewhere. */
  const step = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...(box.current?.querySelectorAll<HTMLElement>("a.cover") ?? [])];
    const row = (event.target as Element).closest('[role="row"]');
    if (!by || links.length === 0 || (event.target as Element).matches("input, select, textarea")) return;
    const at = links.findIndex((link) => row?.contains(link));
    const next = row
      ? links[at + by]
      : links.find((link) => link.getBoundingClientRect().top >= box.current!.getBoundingClientRect().top);
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  const tracks = columns.map((column) => column.width ?? "minmax(0, 1fr)").join(" ");
  const shown = [];
  for (let index = first; index <= last && index < rows.count; index++) shown.push(index);
  return (
    <div
      class={wide && !isNarrow ? "table wide" : "table"}
      role="table"
      aria-label={label}
      aria-rowcount={rows.count + 1}
    >
      <div role="rowgroup" class="thead" ref={head}>
        <div role="row" class="tr" aria-rowindex={1} style={{ gridTemplateColumns: tracks, ...least }}>
          {columns.map((column) => (
            <div key={column.id} role="columnheader" class={column.end ? "end" : ""}>
              {column.head || <span class="hidden">{w.acts}</span>}
            </div>
          ))}
        </div>
      </div>
      <div
        role="rowgroup"
        class="tbody"
        ref={box}
        tabIndex={0}
        aria-label={label}
        onScroll={look}
        onKeyDown={step}
        style={{ maxHeight: `min(${row * most}px, 72vh)` }}
      >
        <div role="presentation" style={{ height: `${whole}px`, position: "relative", ...least }}>
          {shown.map((index) => {
            const found = rows.at(index);
            const place = {
              top: `${placed({ index, top, high, count: rows.count, row })}px`,
              height: `${row}px`,
              gridTemplateColumns: tracks,
            };
            if (found === undefined)
              return (
                <div key={index} role="row" class="tr waits" aria-rowindex={index + 2} style={place}>
                  <div role="cell">…</div>
                </div>
              );
            return (
              <Line
                key={id(found)}
                {...{ found, columns, href, place, index }}
                isSelected={selected !== undefined && id(found) === selected}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface LineGiven<Row> {
  found: Row;
  columns: Column<Row>[];
  href?: (row: Row) => string | undefined;
  place: Record<string, string>;
  index: number;
  isSelected: boolean;
}

function Line<Row>({ found, columns, href, place, index, isSelected }: LineGiven<Row>) {
  const to = href?.(found);
  return (
    <div
      role="row"
      class={`tr${to ? " leads" : ""}${isSelected ? " selected" : ""}`}
      aria-rowindex={index + 2}
      aria-selected={isSelected || undefined}
      style={place}
    >
      {columns.map((column, at) => (
        <div
          key={column.id}
          role="cell"
          class={`${column.end ? "end " : ""}line${column.line ?? (at === 0 ? 1 : 2)}`}
          data-label={column.label}
        >
          {at === 0 && to ? (
            <a class="cover" href={to}>
              {column.cell(found)}
            </a>
          ) : (
            column.cell(found)
          )}
        </div>
      ))}
    </div>
  );
}
