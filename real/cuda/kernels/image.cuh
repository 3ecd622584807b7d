// Convolutional networks: a row is a pixel (image by image, line by line), a column a channel.
// Every output belongs to one thread, so that sums have a fixed order.
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
  uint64_t height, width, kernel, stride, padding, out_height, out_width;

  __device__ explicit Windows(const KernelArguments& a) {
    const auto count = [&](int i) { return static_cast<uint64_t>(a.attributes[i]); };
    height = count(0), width = count(1);
    kernel = count(2), stride = count(3), padding = count(4);
    out_height = (height + 2 * padding - kernel) / stride + 1;
    out_width = (width + 2 * padding - kernel) / stride + 1;
  }
};

extern "C" __global__ void Im2Col(KernelArguments a) {
  const GpuOperand image = Read(a, 0), columns = Write(a, 0);
  const Windows w(a);
  ForEachElement(columns.rows, columns.columns, [&](uint64_t row, uint64_t j) {
    const uint64_t pixel = row % (w.out_height * w.out_width),
                   i = row / (w.out_height * w.out_width);
    const uint64_t kx = j % w.kernel, ky = j / w.kernel % w.kernel, c = j / (w.kernel * w.kernel);
    // Above and left of the image these wrap around, and so are outside.
    const uint64_t y = pixel / w.out_width * w.stride + ky - w.padding;
    const uint64_t x = pixel % w.out_width * w.stride + kx - w.padding;
    const bool inside = y < w.height && x < w.width;
    Store(columns, row, j, inside ? Load(image, (i * w.height + y) * w.width + x, c) : 0);
  });
}

extern "C" __global__ void Col2Im(KernelArguments a) {
  const GpuOperand columns = Read(a, 0), image = Write(a, 0);
  const Windows w(a);
  ForEachElement(image.rows, image.columns, [&](uint64_t row, uint64_t c) {
    const uint64_t x = row % w.width, y = row / w.width % w.height, i = row / (w.width * w.height);
    float sum = 0;
    for (uint64_t ky = 0; ky < w.kernel; ++ky) {
      for (uint64_t kx = 0; kx < w.kernel; ++kx) {
        // Both are times the stride.
        const uint64_t from_y = y + w.padding - ky, from_x = x + w.padding - kx;
        if (from_y % w.stride != 0 || from_x % w.stride != 0) continue;
        const uint64_t oy = from_y / w.stride, ox = from_x / w.stride;
        if (y + w.padding < ky || x + w.padding < kx || oy >= w.out_height || ox >= w.out_width) {
          continue;
        }
        sum += Load(columns, (i * w.out_height + oy) * w.out_width + ox,
                    (c * w.kernel + ky) * w.kernel + kx);
      }
    }
    Store(image, row, c, sum);
  });
}

// The row of the first pixel, in the large image, of the block for pixel `row` of the small one,
// whose width is `width`; blocks are factor × factor. Lines of all images are below each other.
__device__ inline uint64_t BlockAt(uint64_t row, uint64_t width, uint64_t factor) {
  return row / width * factor * width * factor + row % width * factor;
}

// The row of the first largest element of a window, in column j.
__device__ inline uint64_t LargestAt(const GpuOperand& x, uint64_t first, uint64_t j,
                                     uint64_t window, uint64_t line) {
  uint64_t best = first;
  for (uint64_t y = 0; y < window; ++y) {
    for (uint64_t row = first + y * line; row < first + y * line + window; ++row) {
      if (Load(x, row, j) > Load(x, best, j)) best = row;
    }
  }
  return best;
}

extern "C" __global__ void MaxPool(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const uint64_t line = static_cast<uint64_t>(a.attributes[1]);
  const uint64_t window = static_cast<uint64_t>(a.attributes[2]);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    Store(y, i, j, Load(x, LargestAt(x, BlockAt(i, line / window, window), j, window, line), j));
  });
}

extern "C" __global__ void MaxPoolBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), x = Read(a, 1), dx = Write(a, 0);
  const uint64_t line = static_cast<uint64_t>(a.attributes[1]);
  const uint64_t window = static_cast<uint64_t>(a.attributes[2]);
  ForEachElement(dy.rows, dy.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t first = BlockAt(i, line / window, window);
    const uint64_t best = LargestAt(x, first, j, window, line);
    for (uint64_t y = 0; y < window; ++y) {
      for (uint64_t row = first + y * line; row < first + y * line + window; ++row) {
        Store(dx, row, j, row == best ? Load(dy, i, j) : 0);
      }
    }
  });
}

extern "C" __global__ void Upsample(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const uint64_t width = static_cast<uint64_t>(a.attributes[1]);
  ForEachElement(x.rows, x.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t first = BlockAt(i, width, 2);
    const float value = Load(x, i, j);
    Store(y, first, j, value);
    Store(y, first + 1, j, value);
    Store(y, first + 2 * width, j, value);
    Store(y, first + 2 * width + 1, j, value);
  });
}

extern "C" __global__ void UpsampleBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), dx = Write(a, 0);
  const uint64_t width = static_cast<uint64_t>(a.attributes[1]);
  ForEachElement(dx.rows, dx.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t first = BlockAt(i, width, 2);
    Store(dx, i, j,
          Load(dy, first, j) + Load(dy, first + 1, j) + Load(dy, first + 2 * width, j) +
              Load(dy, first + 2 * width + 1, j));
  });
}

extern "C" __global__ void Flatten(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const uint64_t pixels = static_cast<uint64_t>(a.attributes[0]);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    Store(y, i, j, Load(x, i * pixels + j % pixels, j / pixels));
  });
}

extern "C" __global__ void FlattenBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), dx = Write(a, 0);
  const uint64_t pixels = static_cast<uint64_t>(a.attributes[0]);
  ForEachElement(dx.rows, dx.columns, [&](uint64_t i, uint64_t j) {
    Store(dx, i, j, Load(dy, i / pixels, j * pixels + i % pixels));
  });
}

// Where column j of the joined array is: in X or (second) Z, and at which column.
struct JoinedColumn {
  bool second;
  uint64_t column;

  __device__ JoinedColumn(uint64_t j, uint64_t of_x, uint64_t of_z) {
    const uint64_t block = j / (of_x + of_z), at = j % (of_x + of_z);
    second = at >= of_x;
    column = second ? block * of_z + at - of_x : block * of_x + at;
  }
};

extern "C" __global__ void Concatenate(KernelArguments a) {
  const GpuOperand x = Read(a, 0), z = Read(a, 1), y = Write(a, 0);
  const uint64_t blocks = static_cast<uint64_t>(a.attributes[0]);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const JoinedColumn from(j, x.columns / blocks, z.columns / blocks);
    Store(y, i, j, Load(from.second ? z : x, i, from.column));
  });
}

extern "C" __global__ void Separate(KernelArguments a) {
  const GpuOperand y = Read(a, 0), x = Write(a, 0), z = Write(a, 1);
  const uint64_t blocks = static_cast<uint64_t>(a.attributes[0]);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const JoinedColumn to(j, x.columns / blocks, z.columns / blocks);
    Store(to.second ? z : x, i, to.column, Load(y, i, j));
  });
}

extern "C" __global__ void Modulate(KernelArguments a) {
  const GpuOperand x = Read(a, 0), e = Read(a, 1), y = Write(a, 0);
  const uint64_t pixels = static_cast<uint64_t>(a.attributes[0]);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t image = i / pixels;
    Store(y, i, j, Load(x, i, j) * (1 + Load(e, image, 2 * j)) + Load(e, image, 2 * j + 1));
  });
}

extern "C" __global__ void ModulateBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), x = Read(a, 1), e = Read(a, 2);
  const GpuOperand dx = Write(a, 0), de = Write(a, 1);
  const uint64_t pixels = static_cast<uint64_t>(a.attributes[0]);
  ForEachElement(e.rows, x.columns, [&](uint64_t image, uint64_t j) {
    const float scale = 1 + Load(e, image, 2 * j);
    float of_scale = 0, of_shift = 0;
    for (uint64_t i = image * pixels; i < (image + 1) * pixels; ++i) {
      const float gradient = Load(dy, i, j);
      Store(dx, i, j, gradient * scale);
      of_scale += gradient * Load(x, i, j);
      of_shift += gradient;
    }
    Store(de, image, 2 * j, of_scale);
    Store(de, image, 2 * j + 1, of_shift);
  });
}

}  // namespace rehearse
