import { useState } from "preact/hooks";
import { signIn } from "#/api/session";
import { Field, Problem } from "#/kit/base";
import { useWords } from "#/words";
import { frame } from "./words";

/** Asks for a key. */
export function SignIn({ said }: { said?: string }) {
  const w = useWords(frame);
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const go = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await signIn(key);
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <form onSubmit={go}>
        <h1>Scrapeyard</h1>
        <p>{w.signInAbout}</p>
        {said && <Problem error={new Error(said)} />}
        <Field label={w.key}>
          {(id) => (
            <input
              id={id}
              type="password"
              autocomplete="current-password"
              required
              value={key}
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          )}
        </Field>
        <button type="submit" class="main" disabled={busy || !key}>
          {w.signIn}
        </button>
      </form>
    </main>
  );
}
