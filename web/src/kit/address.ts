/** The address is the state of a view: filters, tabs and what is selected. A link shows the same to everybody. */

import { useCallback } from "preact/hooks";
import { useLocation } from "preact-iso";

/** The parameters of the address, and how to change some of them; an empty value leaves one out. */
export function useAddress() {
  const { path, query, route } = useLocation();
  const change = useCallback(
    (some: Record<string, string | null | undefined>, replace = true) => {
      const next = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(some)) {
        if (value) next.set(name, value);
        else next.delete(name);
      }
      const text = next.toString();
      route(location.pathname + (text ? `?${text}` : ""), replace);
    },
    [route],
  );
  return { path, query: query as Record<string, string | undefined>, change, go: route };
}
