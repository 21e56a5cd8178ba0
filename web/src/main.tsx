import { QueryClientProvider } from "@tanstack/preact-query";
import { render } from "preact";
import { LocationProvider } from "preact-iso";
import { cache } from "#/api/client";
import { whoAmI } from "#/api/session";
import { Frame } from "#/frame";
import "#/words";
import "./style.css";
import "./views/style.css";

void whoAmI();

render(
  <QueryClientProvider client={cache}>
    <LocationProvider scope={/^(?!\/(api|docs|metrics)(\/|$))/}>
      <Frame />
    </LocationProvider>
  </QueryClientProvider>,
  document.getElementById("page")!,
);
