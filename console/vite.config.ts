import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";

// Name of the build, by which a long-lived page detects that the controller serves another one.
function nameOf(folder: string): string {
  const hash = createHash("sha256");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((f) => f.isFile());
  for (const path of files.map((f) => join(f.parentPath, f.name)).sort()) hash.update(readFileSync(path));
  return hash.digest("hex").slice(0, 12);
}

const build = nameOf("src");

export default defineConfig({
  // Relative addresses: the controller adds the path prefix to the page (services/controller/console/static_files.py).
  base: "./",
  define: { __BUILD__: JSON.stringify(build) },
  plugins: [{
    name: "build-name",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "build.json", source: JSON.stringify({ build }) });
    },
  }],
  build: {
    outDir: "../services/controller/console/built",
    emptyOutDir: true,
    target: "es2022",
    // Everything is a separate file of this server: its content security policy forbids inline scripts, styles and data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  server: {
    // `npm run dev` beside a run: FIVE=http://127.0.0.1:PORT npm run dev
    proxy: { "/v1": { target: process.env.FIVE ?? "http://127.0.0.1:8080", ws: true } },
  },
});
