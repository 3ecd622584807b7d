// The data of the page, unpacked: base64, gzip, then a header as JSON and columns of integers
// (scenarios/reporting/page_columns.h says how they are written).

export interface Unpacked {
  header: Record<string, unknown>;
  column(number: number): Float64Array;
}

function bytesOfBase64(text: string): Uint8Array {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; ++i) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  if (typeof DecompressionStream === 'undefined')
    throw new Error('this browser cannot unpack the data; any from 2023 or later can');
  const stream = new Blob([bytes as BlobPart])
    .stream()
    .pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A value of more than four bytes, whose first four are known: beyond what bit operations can.
function longValue(bytes: Uint8Array, at: number, low: number): { value: number; at: number } {
  let factor = 2 ** 28;
  let byte: number;
  do {
    byte = bytes[at++];
    low += (byte & 0x7f) * factor;
    factor *= 128;
  } while (byte > 0x7f);
  return { value: low % 2 ? -(low + 1) / 2 : low / 2, at };
}

// Most values are of one or two bytes; there may be millions.
function readColumn(bytes: Uint8Array, begin: number, count: number, rises: boolean): Float64Array {
  const values = new Float64Array(count);
  let at = begin;
  let before = 0;
  for (let i = 0; i < count; ++i) {
    let byte = bytes[at++];
    let low = byte & 0x7f;
    for (let shift = 7; byte > 0x7f && shift < 28; shift += 7) {
      byte = bytes[at++];
      low |= (byte & 0x7f) << shift;
    }
    let value = (low >>> 1) ^ -(low & 1);
    if (byte > 0x7f) ({ value, at } = longValue(bytes, at, low));
    values[i] = rises ? (before += value) : value;
  }
  return values;
}

export const unpackBytes = (text: string): Promise<Uint8Array> =>
  gunzip(bytesOfBase64(text.trim()));

export async function unpackJson(text: string): Promise<Record<string, unknown>> {
  return JSON.parse(new TextDecoder().decode(await unpackBytes(text))) as Record<string, unknown>;
}

export async function unpack(text: string): Promise<Unpacked> {
  return unpackedOf(await unpackBytes(text));
}

export function unpackedOf(bytes: Uint8Array): Unpacked {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Record<
    string,
    unknown
  >;
  const columns = header['columns'] as [number, number, boolean][];
  const begins: number[] = [];
  let begin = 4 + length;
  for (const [, size] of columns) {
    begins.push(begin);
    begin += size;
  }
  if (begin !== bytes.length) throw new Error('the data are cut off');
  return {
    header,
    column: (number) => readColumn(bytes, begins[number], columns[number][0], columns[number][2]),
  };
}
