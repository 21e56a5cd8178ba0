/** A value that components follow. */

import { useEffect, useState } from "preact/hooks";

export interface Store<T> {
  get(): T;
  set(value: T): void;
  follow(told: (value: T) => void): () => void;
}

export function store<T>(value: T): Store<T> {
  const followers = new Set<(value: T) => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const told of followers) told(value);
    },
    follow(told) {
      followers.add(told);
      return () => followers.delete(told);
    },
  };
}

export function useStore<T>(followed: Store<T>): T {
  const [value, setValue] = useState(followed.get());
  useEffect(() => {
    setValue(() => followed.get());
    return followed.follow((next) => setValue(() => next));
  }, [followed]);
  return value;
}
