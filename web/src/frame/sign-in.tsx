import { useState } from "preact/hooks";
import { signIn } from "#/api/session";
import { Field, Problem, Said } from "#/kit/base";
import { useWords } from "#/words";
import { ApiError, type SessionDocument } from "#client";
import { frame } from "./words";

/** Asks for a key, or sends the reader to the identity provider. */
export function SignIn({ who }: { who: SessionDocument }) {
  const w = useWords(frame);
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const go = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const problem = await signIn(key);
    setError(problem ? new ApiError(401, problem) : null);
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <form onSubmit={go}>
        <h1>Scrapeyard</h1>
        <p>
          <Said text={w.signInAbout} />
        </p>
        <Problem error={error} />
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
        {who.oidc_url && (
          <a
            class="button"
            target="_self"
            href={`${who.oidc_url}?next=${encodeURIComponent(location.pathname + location.search)}`}
          >
            {w.withIssuer}
          </a>
        )}
      </form>
    </main>
  );
}
