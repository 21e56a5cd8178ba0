/** Styles that ask for nothing: what would be loaded is left out. The policy refuses the rest. */
export function quietStyles(css: string): string {
  return css
    .replace(/@import[^;]*;/gi, "")
    .replace(/@font-face\s*\{[^}]*\}/gi, "")
    .replace(/url\(\s*(?!["']?data:image\/)[^)]*\)/gi, "none");
}
