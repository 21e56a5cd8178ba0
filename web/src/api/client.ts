/** Calls of the API: one client for the whole page, its answers kept in a query cache. */

import { keepPreviousData, QueryClient, useInfiniteQuery, useMutation, useQuery } from "@tanstack/preact-query";
import { useRef } from "preact/hooks";
import { language } from "#/words";
import { ApiError, type Operations, Scrapeyard } from "#client";
import { connection } from "./connection";
import { credentials, whoAmI } from "./session";

export type Name = keyof Operations;
export type Answer<N extends Name> = Operations[N]["answer"];
type Parts<N extends Name> = Parameters<typeof api.call<N>>[1];

/** Everything the page asks goes through here: it carries who asks, and notes whether the server answers. */
export async function send(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = {
    "Accept-Language": language.get(),
    ...(init.headers as Record<string, string>),
    ...credentials(init.method ?? "GET"),
  };
  try {
    const response = await fetch(input, { ...init, headers, credentials: "same-origin" });
    connection.answered(response.status);
    if (response.status === 401) void whoAmI(); // the session has ended
    return response;
  } catch (error) {
    if (!init.signal?.aborted) connection.lost();
    throw error;
  }
}

export const api = new Scrapeyard(location.origin, { fetch: send, retries: { attempts: 1 } });

export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1000,
      networkMode: "always", // the server may be on this machine, whatever the browser thinks of the network
      retry: (count, error) => !(error instanceof ApiError) && count < 2,
      refetchOnWindowFocus: true,
    },
    mutations: { networkMode: "always" },
  },
});

/** An answer that is kept, shown again at once and refreshed: every `every` seconds if given, at least two. */
export function useCall<N extends Name>(name: N, parts: Parts<N>, options: { every?: number; enabled?: boolean } = {}) {
  return useQuery({
    queryKey: [name, parts],
    queryFn: ({ signal }) => api.call(name, { ...parts, signal }),
    refetchInterval: options.every ? Math.max(2, options.every) * 1000 : false,
    enabled: options.enabled ?? true,
    placeholderData: keepPreviousData,
  });
}

type Paged = { [N in Name]: Answer<N> extends { next_cursor: string | null } ? N : never }[Name];

/** A listing, page after page; `rows` picks the rows of one page. */
export function usePages<N extends Paged, Row>(
  name: N,
  parts: Parts<N>,
  rows: (answer: Answer<N>) => Row[],
  options: { every?: number; enabled?: boolean } = {},
) {
  const found = useInfiniteQuery({
    queryKey: [name, "pages", parts],
    queryFn: async ({ pageParam, signal }) => {
      const query = { ...(parts.query ?? {}), cursor: pageParam };
      return (await api.call(name, { ...parts, query, signal } as Parts<N>)) as Answer<N> & {
        next_cursor: string | null;
      };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: (query) =>
      options.every && (query.state.data?.pages.length ?? 0) <= 1 ? options.every * 1000 : false,
    enabled: options.enabled ?? true,
    placeholderData: keepPreviousData,
  });
  const all = found.data?.pages.flatMap(rows) ?? [];
  return { ...found, rows: all, more: () => found.hasNextPage && !found.isFetchingNextPage && found.fetchNextPage() };
}

/** A change: call `mutate`, and every listing of what it touched is asked for again. */
export function useAction<Given, Taken>(
  act: (given: Given) => Promise<Taken>,
  options: { touches?: Name[]; done?: (taken: Taken, given: Given) => void } = {},
) {
  // The mutation learns of a new function only after the page is painted: who types and presses Enter is quicker.
  const latest = useRef(act);
  latest.current = act;
  return useMutation({
    mutationFn: (given: Given) => latest.current(given),
    onSuccess: (taken, given) => {
      for (const name of options.touches ?? []) void cache.invalidateQueries({ queryKey: [name] });
      options.done?.(taken, given);
    },
  });
}
