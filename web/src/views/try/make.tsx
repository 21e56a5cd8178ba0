/** How the page that was tried becomes a scraper: the commands that write and try it. */

import { useState } from "preact/hooks";
import { useCall } from "#/api/client";
import { Copy, Field } from "#/kit/base";
import { Dialog } from "#/kit/dialog";
import { useWords } from "#/words";
import { commandsOf, fieldsOf, idOf } from "./snippets";
import { own } from "./words";

export function Make({ url, run, close }: { url: string; run: string; close: () => void }) {
  const w = useWords(own);
  const [id, setId] = useState(() => idOf(url));
  const found = useCall("get_run", { path: { run_id: run }, query: {} });
  const fields = fieldsOf(found.data?.result);
  const [write, change, serve] = commandsOf(id, url);
  return (
    <Dialog title={w.make} close={close} wide>
      <div class="stack">
        <Field label={w.makeId}>
          {(name) => (
            <input
              id={name}
              class="mono"
              value={id}
              pattern="[a-z0-9][a-z0-9._\-]*/[a-z0-9][a-z0-9._\-]*"
              onInput={(event) => setId(event.currentTarget.value)}
            />
          )}
        </Field>
        <Command about={w.makeAbout} text={write} />
        <p class="muted">{fields.length ? `${w.makeFields} ${fields.join(", ")}` : found.data && w.makeNoFields}</p>
        <Command about={w.makeThen} text={change} />
        <Command about={w.makeServe} text={serve} />
      </div>
    </Dialog>
  );
}

function Command({ about, text }: { about: string; text: string }) {
  return (
    <div>
      <p>{about}</p>
      <div class="line">
        <pre class="command">{text}</pre>
        <Copy text={text} />
      </div>
    </div>
  );
}
