// How large pages are and how long they take, for README.md: node tests/measure.mjs REHEARSE
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const rehearse = resolve(process.argv[2]);
const scenarios = new URL('../../../scenarios', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'rehearse-measure-'));
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
const steps = [
  ['axonn-gpt20b-perlmutter.json'],
  ['axonn-gpt20b-perlmutter.json', '--no-fold'],
  [
    'megatron-39b-pipeline.json',
    '--set',
    'training.micro_batches=4',
    '--set',
    'training.batch=512',
  ],
  ['megatron-39b-pipeline.json'],
  [
    'megatron-39b-pipeline.json',
    '--set',
    'training.micro_batches=48',
    '--set',
    'training.batch=6144',
    '--ranks',
    '0-17',
  ],
];
console.log(
  '| spans | page | to load | to be drawn | longest frame |\n| ---: | ---: | ---: | ---: | ---: |',
);
for (const [scenario, ...options] of steps) {
  const file = join(folder, 'page.html');
  execFileSync(rehearse, ['report', join(scenarios, scenario), ...options, '-o', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const tries = [];
  for (let i = 0; i < 3; ++i) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(`file://${file}`);
    await page.waitForFunction(() => document.documentElement.dataset.ready === 'yes');
    tries.push(
      await page.evaluate(async () => {
        const { state, timeline, spent, unpacked } = window.rehearse;
        let longest = 0;
        for (let j = 0; j < 40; ++j) {
          if (j % 2) state.pan(0.3);
          else state.zoom(j < 24 ? 0.6 : 1.9, (state.from + state.to) / 2);
          timeline.drawNow();
          longest = Math.max(longest, timeline.lastFrame);
        }
        return { spans: state.page.runs[0].count, spent, unpacked, longest };
      }),
    );
    await page.close();
  }
  const best = (key) => Math.min(...tries.map((one) => one[key]));
  console.log(
    `| ${tries[0].spans.toLocaleString('en-US')} | ${(statSync(file).size / 1024).toFixed(0)} ` +
    `KiB | ${best('unpacked').toFixed(0)} ms | ` +
      `${best('spent').toFixed(0)} ms | ${best('longest').toFixed(1)} ms |`,
  );
}
await browser.close();
rmSync(folder, { recursive: true });
