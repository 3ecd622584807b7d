// The screens of the page that READMEs show: node tests/screens.mjs REHEARSE [FOLDER]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const rehearse = resolve(process.argv[2]);
const scenarios = new URL('../../../scenarios', import.meta.url).pathname;
const pictures = process.argv[3] ?? new URL('../pictures', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'rehearse-screens-'));
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox'],
});

const screen = (name, height, inputs, prepare) =>
  page(
    name,
    height,
    ['report', ...inputs.map((one) => (one.endsWith('.json') ? join(scenarios, one) : one))],
    prepare,
  );

async function page(name, height, command, prepare) {
  const file = join(folder, 'page.html');
  execFileSync(rehearse, [...command, '-o', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  const page = await browser.newPage({ viewport: { width: 1280, height } });
  await page.goto(`file://${file}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'yes');
  await prepare(page);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  await page.screenshot({ path: join(pictures, name) });
  await page.close();
}

await screen(
  'two-steps.png',
  640,
  ['axonn-fig3-a.json', 'axonn-fig3-abcde.json'],
  async (page) => {
    await page.click('#tab-compare');
    await page.evaluate(() => {
      const { state } = window.rehearse;
      state.show(1.68e9, 1.83e9);
      state.moveCursor(1.73e9);
    });
  },
);
await screen('stages.png', 680, ['megatron-39b-pipeline.json'], async (page) => {
  await page.keyboard.press('c');
  await page.click('#tab-memory');
  await page.evaluate(() => window.rehearse.state.moveCursor(5.2e9));
});
await screen(
  'pipelines.png',
  860,
  ['--pipelines', 'gpipe,1f1b,interleaved,zb-h1,zb-v,dualpipe'],
  async () => {},
);
const boxes = [
  ['DGX A100, 4 nodes', 'dgx-a100:nodes=4', 1.3],
  ['DGX H100, 4 nodes', 'dgx-h100:nodes=4', 2.2],
  ['DGX B200, 4 nodes', 'dgx-b200:nodes=4', 4],
];
const choices = boxes.map(([name, cluster, price]) => ({
  name,
  set: { cluster, 'search.price': `${price}USD/h` },
}));
const machine = join(folder, 'machines.json');
execFileSync(rehearse, ['init', '--model', 'gpt-20b', '--strategy', 'fsdp', '--cluster', boxes[0][1], '-o', machine], {
  stdio: 'ignore',
});
await page(
  'machines.png',
  800,
  ['report', machine, '--search', '--set', 'name="Which machine for GPT-20B?"']
    .concat(['--set', `search=${JSON.stringify({ per: 'cluster', axes: [{ choices }] })}`]),
  (own) => own.setViewportSize({ width: 1280, height: 1180 }),
);
await page(
  'ring.png',
  420,
  ['collective', 'all-reduce', '--cluster', 'switch:devices=4', '-b', '100000000']
    .concat(['-a', 'ring', '-p', 'none', '--watch']),
  (own) => own.evaluate(() => window.rehearse.film.show(window.rehearse.film.data.end * 0.42)),
);
await page('lesson.png', 980, ['lessons'], async (own) => {
  await own.emulateMedia({ reducedMotion: 'reduce' });
  await own.click('.lessons button >> nth=3');
  await own.waitForFunction(() => window.rehearse.lesson === 'prefetch');
  await own.click('#change');
  await own.waitForFunction(() => document.querySelectorAll('.curve .simulated').length === 4);
  await own.locator('.sentence .dragged').first().focus();
  await own.keyboard.press('ArrowRight');
  await own.waitForFunction(() => document.querySelectorAll('.curve .simulated').length === 12);
  await own.evaluate(() => window.rehearse.state.moveCursor(3e6));
});
await browser.close();
rmSync(folder, { recursive: true });
