/** What a run's browser shows now: pictures over a WebSocket, as they change. */

import { useEffect, useState } from "preact/hooks";
import { Empty } from "#/kit/base";
import { useWords } from "#/words";
import { own } from "./words";

export function LiveView({ id }: { id: string }) {
  const w = useWords(own);
  const [picture, setPicture] = useState("");
  useEffect(() => {
    let shown = "";
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/scrape/${id}/live`);
    socket.binaryType = "blob";
    socket.onmessage = (message: MessageEvent<Blob>) => {
      if (shown) URL.revokeObjectURL(shown);
      shown = URL.createObjectURL(message.data);
      setPicture(shown);
    };
    return () => {
      socket.close();
      if (shown) URL.revokeObjectURL(shown);
    };
  }, [id]);
  if (!picture) return <Empty title={w.liveNone} />;
  return <img class="shot" src={picture} alt={w.liveAbout} />;
}
