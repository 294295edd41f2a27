import { defineConfig } from "vite";

// The report's program: one script and one style sheet, which `libs/five/reports/html_page.py` puts into the page that it writes.
export default defineConfig({
  define: { __BUILD__: JSON.stringify("report") },
  publicDir: false,
  build: {
    outDir: "../services/controller/console/built/report",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: "src/report/main.tsx",
      output: { format: "iife", entryFileNames: "report.js", assetFileNames: "report[extname]" },
    },
  },
});
