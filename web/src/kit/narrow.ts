import { store } from "#/api/store";

const media = matchMedia("(max-width: 720px)");
/** Whether the screen is that of a telephone. */
export const narrow = store(media.matches);
media.addEventListener("change", () => narrow.set(media.matches));
