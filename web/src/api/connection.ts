/** Whether the server answers: shown to the reader, and tried again until it does. */

import { store } from "./store";

const AGAIN_MS = 2000;

class Connection {
  readonly state = store<"ok" | "lost">("ok");
  private timer: number | undefined;

  answered(status: number): void {
    if (status !== 502 && status !== 504 && this.state.get() === "lost") this.heal();
  }

  lost(): void {
    this.state.set("lost");
    this.timer ??= window.setInterval(() => this.ask(), AGAIN_MS);
  }

  private async ask(): Promise<void> {
    try {
      if ((await fetch("/api/live", { cache: "no-store" })).ok) this.heal();
    } catch {
      // still away: the timer asks again
    }
  }

  private heal(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.state.set("ok");
  }
}

export const connection = new Connection();
