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
console.log('| spans | page | to be drawn, processor | longest frame | median frame |');
console.log('| ---: | ---: | ---: | ---: | ---: |');
for (const [scenario, ...options] of steps) {
  const file = join(folder, 'page.html');
  execFileSync(rehearse, ['report', join(scenarios, scenario), ...options, '-o', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const tries = [];
  for (let i = 0; i < Number(process.argv[3] ?? 5); ++i) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    await page.goto(`file://${file}`);
    await page.waitForFunction(() => document.documentElement.dataset.ready === 'yes');
    const { metrics } = await session.send('Performance.getMetrics');
    const spent = metrics.find((one) => one.name === 'TaskDuration').value * 1e3;
    const drawn = await page.evaluate(async () => {
      const { state, timeline } = window.rehearse;
      const frames = [];
      for (let j = 0; j < 40; ++j) {
        const begin = performance.now();
        if (j % 2) state.pan(0.3);
        else state.zoom(j < 24 ? 0.6 : 1.9, (state.from + state.to) / 2);
        timeline.drawNow();
        frames.push(performance.now() - begin);
        await new Promise((done) => setTimeout(done, 0));
      }
      return { spans: state.page.runs[0].count, frames };
    });
    tries.push({ ...drawn, spent });
    await page.close();
  }
  // The machine may be busy: of each frame the least of all loads.
  const frames = tries[0].frames
    .map((_, j) => Math.min(...tries.map((one) => one.frames[j])))
    .sort((a, b) => a - b);
  const spent = Math.min(...tries.map((one) => one.spent));
  const columns = [
    tries[0].spans.toLocaleString('en-US'),
    `${(statSync(file).size / 1024).toFixed(0)} KiB`,
    `${spent.toFixed(0)} ms`,
    `${frames.at(-1).toFixed(1)} ms`,
    `${frames[20].toFixed(1)} ms`,
  ];
  console.log(`| ${columns.join(' | ')} |`);
}
await browser.close();
rmSync(folder, { recursive: true });
