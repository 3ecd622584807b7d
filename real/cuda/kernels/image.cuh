// Convolutional networks: images are rows of (channel, y, x). Every output is one thread's, so that sums
// have one order.
#pragma once

#include "real/cuda/kernels/operand.cuh"

namespace rehearse {

extern "C" __global__ void Relu(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  ForEachElement(y.rows, y.columns,
                 [&](uint64_t i, uint64_t j) { Store(y, i, j, fmaxf(Load(x, i, j), 0)); });
}

extern "C" __global__ void ReluBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), y = Read(a, 1), dx = Write(a, 0);
  ForEachElement(dx.rows, dx.columns, [&](uint64_t i, uint64_t j) {
    Store(dx, i, j, Load(y, i, j) > 0 ? Load(dy, i, j) : 0);
  });
}

struct Windows {
  uint64_t channels, height, width, kernel, stride, padding, out_height, out_width;

  __device__ explicit Windows(const KernelArguments& a) {
    const auto count = [&](int i) { return static_cast<uint64_t>(a.attributes[i]); };
    channels = count(0), height = count(1), width = count(2);
    kernel = count(3), stride = count(4), padding = count(5);
    out_height = (height + 2 * padding - kernel) / stride + 1;
    out_width = (width + 2 * padding - kernel) / stride + 1;
  }
};

extern "C" __global__ void Im2Col(KernelArguments a) {
  const GpuOperand image = Read(a, 0), columns = Write(a, 0);
  const Windows w(a);
  ForEachElement(columns.rows, columns.columns, [&](uint64_t row, uint64_t j) {
    const uint64_t pixel = row % (w.out_height * w.out_width), i = row / (w.out_height * w.out_width);
    const uint64_t kx = j % w.kernel, ky = j / w.kernel % w.kernel, c = j / (w.kernel * w.kernel);
    // Wraps around above and left of the image.
    const uint64_t y = pixel / w.out_width * w.stride + ky - w.padding;
    const uint64_t x = pixel % w.out_width * w.stride + kx - w.padding;
    const bool inside = y < w.height && x < w.width;
    Store(columns, row, j, inside ? Load(image, i, (c * w.height + y) * w.width + x) : 0);
  });
}

extern "C" __global__ void Col2Im(KernelArguments a) {
  const GpuOperand columns = Read(a, 0), image = Write(a, 0);
  const Windows w(a);
  ForEachElement(image.rows, image.columns, [&](uint64_t i, uint64_t at) {
    const uint64_t x = at % w.width, y = at / w.width % w.height, c = at / (w.width * w.height);
    float sum = 0;
    for (uint64_t ky = 0; ky < w.kernel; ++ky) {
      for (uint64_t kx = 0; kx < w.kernel; ++kx) {
        const uint64_t from_y = y + w.padding - ky, from_x = x + w.padding - kx;  // times the stride
        if (from_y % w.stride != 0 || from_x % w.stride != 0) continue;
        const uint64_t oy = from_y / w.stride, ox = from_x / w.stride;
        if (y + w.padding < ky || x + w.padding < kx || oy >= w.out_height || ox >= w.out_width) {
          continue;
        }
        sum += Load(columns, (i * w.out_height + oy) * w.out_width + ox,
                    (c * w.kernel + ky) * w.kernel + kx);
      }
    }
    Store(image, i, at, sum);
  });
}

// The element of a large image that is the first of the block of pixel `at` of the small one, whose width
// is `width`; blocks are factor × factor. Channels lie below each other.
__device__ inline uint64_t BlockAt(uint64_t at, uint64_t width, uint64_t factor) {
  return at / width * factor * width * factor + at % width * factor;
}

// The offset of the first largest element of a window.
__device__ inline uint64_t LargestAt(const GpuOperand& x, uint64_t i, uint64_t first,
                                     uint64_t window, uint64_t line) {
  uint64_t best = 0;
  for (uint64_t y = 0; y < window; ++y) {
    for (uint64_t at = y * line; at < y * line + window; ++at) {
      if (Load(x, i, first + at) > Load(x, i, first + best)) best = at;
    }
  }
  return best;
}

extern "C" __global__ void MaxPool(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const uint64_t line = static_cast<uint64_t>(a.attributes[2]);
  const uint64_t window = static_cast<uint64_t>(a.attributes[3]);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t first = BlockAt(j, line / window, window);
    Store(y, i, j, Load(x, i, first + LargestAt(x, i, first, window, line)));
  });
}

extern "C" __global__ void MaxPoolBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), x = Read(a, 1), dx = Write(a, 0);
  const uint64_t line = static_cast<uint64_t>(a.attributes[2]);
  const uint64_t window = static_cast<uint64_t>(a.attributes[3]);
  ForEachElement(dy.rows, dy.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t first = BlockAt(j, line / window, window);
    const uint64_t best = LargestAt(x, i, first, window, line);
    for (uint64_t y = 0; y < window; ++y) {
      for (uint64_t at = y * line; at < y * line + window; ++at) {
        Store(dx, i, first + at, at == best ? Load(dy, i, j) : 0);
      }
    }
  });
}

extern "C" __global__ void Upsample(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const uint64_t width = static_cast<uint64_t>(a.attributes[2]);
  ForEachElement(x.rows, x.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t first = BlockAt(j, width, 2);
    const float value = Load(x, i, j);
    Store(y, i, first, value);
    Store(y, i, first + 1, value);
    Store(y, i, first + 2 * width, value);
    Store(y, i, first + 2 * width + 1, value);
  });
}

extern "C" __global__ void UpsampleBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), dx = Write(a, 0);
  const uint64_t width = static_cast<uint64_t>(a.attributes[2]);
  ForEachElement(dx.rows, dx.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t first = BlockAt(j, width, 2);
    Store(dx, i, j,
          Load(dy, i, first) + Load(dy, i, first + 1) + Load(dy, i, first + 2 * width) +
              Load(dy, i, first + 2 * width + 1));
  });
}

}  // namespace rehearse
