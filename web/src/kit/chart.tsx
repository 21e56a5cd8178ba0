/** A chart over time, drawn by uPlot on a canvas; the same numbers as words for those who do not see it. */

import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { useStore } from "#/api/store";
import { language, number, theme, useWords } from "#/words";
import { common } from "#/words/common";
import { type Series, stack } from "./series";

interface Given {
  label: string;
  /** Seconds since 1970. */
  at: number[];
  series: Series[];
  stacked?: boolean;
  height?: number;
  shown?: (value: number) => string;
}

export function Chart(given: Given) {
  const w = useWords(common);
  return given.at.length > 1 ? <Plotted {...given} /> : <p class="muted">{w.noCurve}</p>;
}

function Plotted({ label, at, series, stacked, height = 140, shown = (value) => number(value, 1) }: Given) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useStore(theme);
  const lang = useStore(language);
  const names = series.map((each) => each.name).join();
  const data = [at, ...(stacked ? stack(series) : series.map((each) => each.values))] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false;
    void Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]).then(([{ default: Plot }]) => {
      if (gone || !box.current) return;
      plot.current = new Plot(options(box.current, series, { height, stacked, shown }), latest.current, box.current);
    });
    const fit = new ResizeObserver(
      ([entry]) => entry && plot.current?.setSize({ width: Math.floor(entry.contentRect.width), height }),
    );
    if (box.current) fit.observe(box.current);
    return () => {
      gone = true;
      fit.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names, now, lang, height, stacked, at.length < 2]);
  useEffect(() => {
    plot.current?.setData(data);
  });
  if (at.length < 2) return <div class="chart muted" style={{ height: `${height}px` }} />;
  const last = series.map((each) => `${each.name} ${shown(each.values.at(-1) ?? 0)}`).join(", ");
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={`${label}: ${last}`} style={{ height: `${height}px` }} />
      {series.length > 1 && (
        <figcaption>
          {series.map((each) => (
            <span key={each.name} class={`key ${each.tone.slice(2)}`}>
              {each.name}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function options(
  box: HTMLElement,
  series: Series[],
  more: { height: number; stacked?: boolean; shown: (value: number) => string },
): uPlot.Options {
  const style = getComputedStyle(box);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--border"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  const clock = (seconds: number) =>
    new Intl.DateTimeFormat(
      language.get(),
      seconds > 2 * 86_400
        ? { month: "numeric", day: "numeric" }
        : { hour: "2-digit", minute: "2-digit", ...(seconds < 600 ? { second: "2-digit" } : {}), hourCycle: "h23" },
    );
  return {
    width: box.clientWidth || 300,
    height: more.height,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: { show: true, points: { show: false }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [
      {
        ...axis,
        size: 22,
        values: (_plot, ticks) =>
          ticks.map((tick) => clock((ticks.at(-1) ?? 0) - (ticks[0] ?? 0)).format(new Date(tick * 1000))),
      },
      { ...axis, size: 40, space: 24, values: (_plot, ticks) => ticks.map(more.shown) },
    ],
    series: [
      {},
      ...series.map((each) => ({
        label: each.name,
        stroke: colour(each.tone),
        width: 1.5,
        fill: more.stacked ? colour(each.tone) : undefined,
        points: { show: false },
      })),
    ],
  };
}
