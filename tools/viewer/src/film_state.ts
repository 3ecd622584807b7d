// What a film holds (scenarios/reporting/collective_film.h), and what lies where at a moment of it.
import type { Unpacked } from './decode';
import type { Drawing } from './data';

export interface Move {
  begin: number; // ns
  end: number;
  bytes: number;
  from: number; // places: ranks, then switches
  to: number;
  part: number;
  adds: boolean;
  chunks: [number, number][]; // read, written
  ways: number[];
}
export interface Block {
  hue: number;
  parts: bigint; // a bit for each contribution
}
export interface Film {
  title: string;
  madeBy: string;
  kind: string;
  algorithm: string;
  protocol: string;
  bytes: number;
  end: number; // ns
  groups: number;
  ranks: [number, string, number][]; // rank, name, group
  switches: number;
  parts: { chunks: number; share: number }[];
  full: number;
  holds: [number, number, number, number][]; // place, part, chunk, hue
  wants: [number, number, number][];
  ways: [string, string, number][]; // from, to, bytes a second
  cluster: Drawing;
  moves: Move[]; // by begin
}

const kNanosecond = 1000;

export function readFilm(unpacked: Unpacked): Film {
  const json = unpacked.header as Record<string, any>;
  if (json.schema !== 'rehearse.film.v1')
    throw new Error(`the data are ${json.schema}, and this page reads rehearse.film.v1`);
  const own = Object.fromEntries(
    Object.entries(json.moves as Record<string, number>).map(([name, one]) => [
      name,
      unpacked.column(one),
    ]),
  );
  let chunk = 0;
  let crossed = 0;
  const moves = Array.from(own.begin, (begin, i): Move => {
    const chunks: [number, number][] = [];
    for (let k = 0; k < own.chunk_count[i]; ++k, chunk += 2)
      chunks.push([own.chunks[chunk], own.chunks[chunk + 1]]);
    const ways = Array.from(own.crossed.subarray(crossed, crossed + own.crossed_count[i]));
    crossed += own.crossed_count[i];
    return {
      begin: begin / kNanosecond,
      end: (begin + own.took[i]) / kNanosecond,
      bytes: own.bytes[i],
      from: own.from[i],
      to: own.to[i],
      part: own.part[i],
      adds: own.adds[i] === 1,
      chunks,
      ways,
    };
  });
  const rows = (number: number, wide: number) => {
    const flat = unpacked.column(number);
    return Array.from({ length: flat.length / wide }, (_, i) =>
      Array.from(flat.subarray(i * wide, (i + 1) * wide)),
    );
  };
  return {
    ...(json as any),
    madeBy: json.made_by,
    end: json.end / kNanosecond,
    holds: rows(json.holds, 4),
    wants: rows(json.wants, 3),
    moves,
  } as Film;
}

export const keyOf = (place: number, part: number, chunk: number) =>
  (place * 65536 + part) * 1048576 + chunk;

// What lies where. It goes forward, and begins again to go back.
export class FilmState {
  blocks = new Map<number, Block>();
  done = 0; // messages
  // At a moment messages end first, then members copy within their memory, then messages begin.
  private readonly events: { at: number; kind: 'end' | 'copy' | 'begin'; move: number }[] = [];
  private readonly carried = new Map<number, Block[]>();
  private next = 0;
  private now = -1;

  constructor(private readonly film: Film) {
    film.moves.forEach(({ begin, end }, move) => {
      if (begin === end) this.events.push({ at: end, kind: 'copy', move });
      else this.events.push({ at: begin, kind: 'begin', move }, { at: end, kind: 'end', move });
    });
    const order = { end: 0, copy: 1, begin: 2 };
    this.events.sort((a, b) => a.at - b.at || order[a.kind] - order[b.kind] || a.move - b.move);
    this.restart();
  }

  private restart(): void {
    this.blocks = new Map(
      this.film.holds.map(([place, part, chunk, hue]) => [
        keyOf(place, part, chunk),
        { hue, parts: 1n << BigInt(place) },
      ]),
    );
    this.carried.clear();
    this.next = 0;
    this.done = 0;
    this.now = -1;
  }

  moveTo(at: number): void {
    if (at < this.now) this.restart();
    this.now = at;
    for (; this.next < this.events.length && this.events[this.next].at <= at; ++this.next) {
      const { kind, move } = this.events[this.next];
      const { from, to, part, adds, chunks } = this.film.moves[move];
      if (kind !== 'end')
        this.carried.set(
          move,
          chunks.map(([read]) => this.blocks.get(keyOf(from, part, read)) ?? { hue: -1, parts: 0n }),
        );
      if (kind === 'begin') continue;
      const carried = this.carried.get(move)!;
      this.carried.delete(move);
      if (kind === 'end') ++this.done;
      chunks.forEach(([, written], i) => {
        const key = keyOf(to, part, written);
        const before = this.blocks.get(key);
        this.blocks.set(
          key,
          adds && before
            ? { hue: before.hue, parts: before.parts | carried[i].parts }
            : carried[i],
        );
      });
    }
  }

  // What a move that is under way carries.
  carriedBy(move: number): Block[] {
    return this.carried.get(move) ?? [];
  }
  get underWay(): Iterable<number> {
    return this.carried.keys();
  }
}

export function countOf(parts: bigint): number {
  let count = 0;
  for (; parts > 0n; parts &= parts - 1n) ++count;
  return count;
}
