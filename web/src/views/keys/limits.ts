/** Limits by name, such as `daily.runs`, as the call wants them. */
export function limitsOf(given: Record<string, string>) {
  const filled = Object.entries(given).filter(([, text]) => Number(text) > 0);
  const of = (prefix: string) =>
    Object.fromEntries(
      filled
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, text]) => [name.slice(prefix.length), Number(text)]),
    );
  const plain = Object.fromEntries(
    filled.filter(([name]) => !name.includes(".")).map(([name, text]) => [name, Number(text)]),
  );
  return { ...plain, daily: of("daily."), monthly: of("monthly.") };
}
