/** Questions before something is lost, and short notes after something is done. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { store, useStore } from "#/api/store";
import { useWords } from "#/words";
import { common } from "#/words/common";
import { Problem } from "./base";

/** A window over the page. The browser keeps the focus inside, closes it on Escape and gives the focus back. */
export function Dialog({
  title,
  close,
  children,
  wide,
}: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  wide?: boolean;
}) {
  const w = useWords(common);
  const box = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  useEffect(() => {
    const now = box.current;
    now?.showModal();
    return () => {
      isGone.current = true; // it may have made room for another one
      now?.close();
    };
  }, []);
  return (
    <dialog ref={box} class={wide ? "wide" : ""} onClose={() => isGone.current || close()} aria-label={title}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" aria-label={w.close} onClick={() => box.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Asks before it acts: what will happen, in numbers, and the verb on the button. */
export function Confirm({
  title,
  children,
  verb,
  act,
  close,
}: {
  title: string;
  children: ComponentChildren;
  verb: string;
  act: () => Promise<unknown>;
  close: () => void;
}) {
  const w = useWords(common);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const go = async () => {
    setBusy(true);
    try {
      await act();
      close();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <Dialog title={title} close={close}>
      <div class="body">{children}</div>
      <Problem error={error} />
      <footer>
        <button type="button" onClick={close}>
          {w.cancel}
        </button>
        <button type="button" class="danger" disabled={busy} onClick={go}>
          {verb}
        </button>
      </footer>
    </Dialog>
  );
}

interface Note {
  id: number;
  text: string;
  undo?: () => void;
}

const notes = store<Note[]>([]);
let count = 0;

/** Say that something is done, with a way back for ten seconds where there is one. */
export function note(text: string, undo?: () => void): void {
  const id = ++count;
  notes.set([...notes.get().slice(-3), { id, text, undo }]);
  setTimeout(() => drop(id), undo ? 10_000 : 5000);
}

const drop = (id: number) => notes.set(notes.get().filter((each) => each.id !== id));

export function Notes() {
  const w = useWords(common);
  return (
    <div class="notes" role="status" aria-live="polite">
      {useStore(notes).map((each) => (
        <div key={each.id}>
          <span>{each.text}</span>
          {each.undo && (
            <button
              type="button"
              class="small"
              onClick={() => {
                each.undo?.();
                drop(each.id);
              }}
            >
              {w.undo}
            </button>
          )}
          <button type="button" class="quiet small" aria-label={w.close} onClick={() => drop(each.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
