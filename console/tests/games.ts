// Watches a live game and seeks in a recording in a real browser. tests/console/test_games.py runs it and checks its
// output.
import { chromium } from "playwright-core";

const [url, token, executablePath, replay] = process.argv.slice(2) as [string, string, string, string];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1600, height: 1000 }, extraHTTPHeaders: { Authorization: `Bearer ${token}` } });
const wrong: string[] = [];
page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
page.on("pageerror", (error) => wrong.push(error.message));
const seen: Record<string, unknown> = {};

const step = async (): Promise<number> => Number(await page.locator("canvas.moving").getAttribute("data-step"));
const beyond = async (than: number): Promise<number> => {
  await page.waitForFunction((n) => Number(document.querySelector<HTMLElement>("canvas.moving")?.dataset.step) > n, than, { timeout: 60_000 });
  return step();
};
/** Returns the shown step once it stays the same, or after ten seconds. */
const settled = async (): Promise<number> => {
  let before = -1, now = await step();
  for (let tries = 0; now !== before && tries < 30; tries++) {
    before = now;
    await page.waitForTimeout(300);
    now = await step();
  }
  return now;
};
const colours = (): Promise<number> => page.evaluate(() => {
  const found = new Set<number>();
  for (const canvas of document.querySelectorAll("canvas")) {
    const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 404) found.add(data[at]! << 16 | data[at + 1]! << 8 | data[at + 2]!);
  }
  return found.size;
});

try {
  // A live game, from the list.
  await page.goto(`${url}/games`);
  await page.locator(".wall a").first().click({ timeout: 60_000 });
  seen.address = new URL(page.url()).pathname;
  const first = await beyond(3);
  seen.players = await page.locator(".standing .side").allInnerTexts();
  seen.injected = await page.locator(".viewer b.x, .viewer script").count();
  seen.colours = await colours();
  seen.wentOn = (await beyond(first)) > first;
  await page.getByRole("button", { name: "Pause" }).click();
  const held = await settled();
  await page.waitForTimeout(700);
  seen.paused = (await step()) === held;
  await page.locator("input.scrub").focus();
  await page.keyboard.press("Home");
  await page.waitForFunction(() => Number(document.querySelector<HTMLElement>("canvas.moving")?.dataset.step) < 8);
  seen.rewound = await step();
  await page.getByRole("button", { name: "Play" }).click();
  await beyond(seen.rewound as number);
  await page.getByRole("button", { name: "Live" }).click();
  await beyond(held);
  seen.backAtTheEdge = (await step()) > held;

  // A recording.
  await page.goto(`${url}/games/replay/${replay}`);
  await beyond(1);
  await page.getByLabel("Speed").selectOption("8");
  await beyond(await step() + 30);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.locator("input.scrub").evaluate((input: HTMLInputElement) => {
    input.value = input.max;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await page.waitForFunction(() => {
    const input = document.querySelector<HTMLInputElement>("input.scrub")!;
    return Number(document.querySelector<HTMLElement>("canvas.moving")?.dataset.step) >= Number(input.max) - 1;
  });
  await page.locator(".feed li", { hasText: "Radiant won" }).first().waitFor();
  seen.feed = await page.locator(".feed li").allInnerTexts();
  seen.clockAtTheEnd = await page.locator(".clock").innerText();
  await page.getByLabel("Fog of").selectOption("radiant");
  await page.waitForTimeout(200);
  seen.fogged = await colours();
  await page.locator(".feed button").last().click();
  await page.waitForFunction((text) => document.querySelector<HTMLElement>(".clock")?.innerText !== text, seen.clockAtTheEnd);
  seen.clockAfterTheJump = await page.locator(".clock").innerText();
  await page.locator(".scores .dire .pick").first().click();
  await page.getByText("its team wins").waitFor();
  seen.thinks = await page.locator(".beside").innerText();
  await page.goto(`${url}/games/replay/hostile`);
  seen.hostile = await page.getByRole("alert").innerText({ timeout: 60_000 });
} finally {
  await browser.close();
}
console.log(JSON.stringify({ ...seen, wrong }));
