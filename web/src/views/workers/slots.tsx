/** Slots of a worker as little squares; as one bar where there are many. */

import { Bar } from "#/kit/base";
import { number, useWords } from "#/words";
import { own } from "./words";

const SQUARES = 40;

export function Slots({ busy, all }: { busy: number; all: number }) {
  const w = useWords(own);
  const words = w.slotsAre(number(busy), number(all));
  if (all > SQUARES)
    return (
      <Bar
        label={words}
        parts={[
          { tone: "busy", value: busy, name: w.busy },
          { tone: "off", value: all - busy, name: w.free },
        ]}
      />
    );
  return (
    <span class="squares" role="img" aria-label={words} title={words}>
      {Array.from({ length: all }, (_, at) => (
        <span key={at} class={at < busy ? "busy" : ""} />
      ))}
    </span>
  );
}
