import { defineConfig } from "vite";

// Build of the report: one script and one style sheet, which `libs/five/reports/html_page.py` embeds into the page.
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
