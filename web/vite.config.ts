import { fileURLToPath, URL } from "node:url";
import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [preact()],
  resolve: {
    alias: [
      { find: "#client", replacement: at("../clients/typescript/src/index.ts") },
      { find: /^#\//, replacement: at("./src/") },
    ],
  },
  build: {
    outDir: at("../src/scrapeyard/gateway/built"),
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
});
