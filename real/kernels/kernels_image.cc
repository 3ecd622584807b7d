// Convolutional networks: a convolution is im2col and a product; pooling; up-sampling; moving
// channels.
//
// A row is a pixel of an image (image by image, line by line), a column a channel.
#include <algorithm>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

// Calls visit(pixel of the image or nothing outside it, element of the row of columns) for the
// first channel of every input that an output sees; the other channels are `channel` apart in the
// columns.
template <typename T, typename Visit>
void ForEachWindow(const KernelCall<T>& call, const Operand<T>& image, const Operand<T>& columns,
                   Visit visit) {
  const uint64_t height = call.Count(0);
  const uint64_t width = call.Count(1);
  const uint64_t kernel = call.Count(2);
  const uint64_t stride = call.Count(3);
  const uint64_t padding = call.Count(4);
  const uint64_t out_height = (height + 2 * padding - kernel) / stride + 1;
  const uint64_t out_width = (width + 2 * padding - kernel) / stride + 1;
  const uint64_t images = image.rows / (height * width);
  CHECK_EQ(image.rows, images * height * width);
  CHECK_EQ(columns.columns, image.columns * kernel * kernel);
  CHECK_EQ(columns.rows, images * out_height * out_width);
  uint64_t row = 0;
  for (uint64_t i = 0; i < images; ++i) {
    for (uint64_t y = 0; y < out_height; ++y) {
      for (uint64_t x = 0; x < out_width; ++x, ++row) {
        T* window = columns.Row(row);
        for (uint64_t ky = 0; ky < kernel; ++ky) {
          for (uint64_t kx = 0; kx < kernel; ++kx, ++window) {
            const uint64_t from_y = y * stride + ky - padding;  // outside, it wraps around
            const uint64_t from_x = x * stride + kx - padding;
            const bool inside = from_y < height && from_x < width;
            visit(inside ? image.Row((i * height + from_y) * width + from_x) : nullptr, window,
                  kernel * kernel);
          }
        }
      }
    }
  }
}

// Calls visit(row of the small image's pixel, rows of the large image's pixels at that place: the
// first one, and how many rows a line has) for every pixel of the small image.
template <typename T, typename Visit>
void ForEachBlock(const Operand<T>& large, const Operand<T>& small, uint64_t height, uint64_t width,
                  uint64_t factor, Visit visit) {
  CHECK_EQ(small.rows % (height * width), 0u);
  CHECK_EQ(large.rows, small.rows * factor * factor);
  CHECK_EQ(large.columns, small.columns);
  const uint64_t line = width * factor;
  for (uint64_t row = 0; row < small.rows; ++row) {
    const uint64_t y = row / width;  // lines of all images are below each other
    visit(row, y * factor * line + row % width * factor, line);
  }
}

template <typename T, typename Visit>
void ForEachPool(const KernelCall<T>& call, const Operand<T>& x, const Operand<T>& y, Visit visit) {
  const uint64_t window = call.Count(2);
  CHECK_EQ(call.Count(0) % window, 0u);
  CHECK_EQ(call.Count(1) % window, 0u);
  ForEachBlock(x, y, call.Count(0) / window, call.Count(1) / window, window, visit);
}

// The row of the first largest element of a window, in column j.
template <typename T>
uint64_t LargestRow(const Operand<T>& x, uint64_t first, uint64_t line, uint64_t window,
                    uint64_t j) {
  uint64_t best = first;
  for (uint64_t y = 0; y < window; ++y) {
    for (uint64_t row = first + y * line; row < first + y * line + window; ++row) {
      if (x.At(row, j) > x.At(best, j)) best = row;
    }
  }
  return best;
}

// Calls visit(image, row) for each row of images that have `pixels` rows each.
template <typename Visit>
void ForEachPixel(uint64_t rows, uint64_t pixels, Visit visit) {
  CHECK_EQ(rows % pixels, 0u);
  for (uint64_t row = 0; row < rows; ++row) visit(row / pixels, row);
}

// The two operands whose columns are joined, and the joined one.
template <typename T>
struct Joined {
  const Operand<T>& x;
  const Operand<T>& z;
  const Operand<T>& y;

  // Calls visit(element of Y, element of X or Z, how many of them) for each block of each row.
  template <typename Visit>
  void ForEachBlock(uint64_t blocks, Visit visit) const {
    CHECK_EQ(x.columns % blocks, 0u);
    CHECK_EQ(z.columns % blocks, 0u);
    CHECK_EQ(y.columns, x.columns + z.columns);
    const uint64_t of_x = x.columns / blocks;
    const uint64_t of_z = z.columns / blocks;
    for (uint64_t i = 0; i < y.rows; ++i) {
      for (uint64_t block = 0; block < blocks; ++block) {
        T* joined = y.Row(i) + block * (of_x + of_z);
        visit(joined, x.Row(i) + block * of_x, of_x);
        visit(joined + of_x, z.Row(i) + block * of_z, of_z);
      }
    }
  }
};

}  // namespace

template <typename T>
void Im2Col(const KernelCall<T>& call) {
  const Operand<T>& image = call.reads[0];
  ForEachWindow(call, image, call.writes[0], [&](const T* pixel, T* column, uint64_t channel) {
    for (uint64_t c = 0; c < image.columns; ++c) {
      column[c * channel] = pixel == nullptr ? T(0) : pixel[c];
    }
  });
}

template <typename T>
void Col2Im(const KernelCall<T>& call) {
  const Operand<T>& image = call.writes[0];
  for (uint64_t i = 0; i < image.rows; ++i) {
    std::fill(image.Row(i), image.Row(i) + image.columns, T(0));
  }
  ForEachWindow(call, image, call.reads[0], [&](T* pixel, const T* column, uint64_t channel) {
    if (pixel == nullptr) return;
    for (uint64_t c = 0; c < image.columns; ++c) pixel[c] += column[c * channel];
  });
}

template <typename T>
void MaxPool(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  ForEachPool(call, x, y, [&](uint64_t row, uint64_t first, uint64_t line) {
    for (uint64_t j = 0; j < y.columns; ++j) {
      y.At(row, j) = x.At(LargestRow(x, first, line, call.Count(2), j), j);
    }
  });
}

template <typename T>
void MaxPoolBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CHECK_EQ(dx.elements(), x.elements());
  for (uint64_t i = 0; i < dx.rows; ++i) std::fill(dx.Row(i), dx.Row(i) + dx.columns, T(0));
  ForEachPool(call, x, dy, [&](uint64_t row, uint64_t first, uint64_t line) {
    for (uint64_t j = 0; j < dy.columns; ++j) {
      dx.At(LargestRow(x, first, line, call.Count(2), j), j) = dy.At(row, j);
    }
  });
}

template <typename T>
void Upsample(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  ForEachBlock(y, x, call.Count(0), call.Count(1), 2,
               [&](uint64_t row, uint64_t first, uint64_t line) {
                 for (const uint64_t to : {first, first + 1, first + line, first + line + 1}) {
                   std::copy_n(x.Row(row), x.columns, y.Row(to));
                 }
               });
}

template <typename T>
void UpsampleBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& dx = call.writes[0];
  ForEachBlock(dy, dx, call.Count(0), call.Count(1), 2,
               [&](uint64_t row, uint64_t first, uint64_t line) {
                 for (uint64_t j = 0; j < dx.columns; ++j) {
                   dx.At(row, j) = dy.At(first, j) + dy.At(first + 1, j) + dy.At(first + line, j) +
                                   dy.At(first + line + 1, j);
                 }
               });
}

template <typename T>
void Flatten(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  const uint64_t pixels = call.Count(0);
  CHECK_EQ(y.elements(), x.elements());
  ForEachPixel(x.rows, pixels, [&](uint64_t image, uint64_t row) {
    for (uint64_t c = 0; c < x.columns; ++c) y.At(image, c * pixels + row % pixels) = x.At(row, c);
  });
}

template <typename T>
void FlattenBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& dx = call.writes[0];
  const uint64_t pixels = call.Count(0);
  CHECK_EQ(dy.elements(), dx.elements());
  ForEachPixel(dx.rows, pixels, [&](uint64_t image, uint64_t row) {
    for (uint64_t c = 0; c < dx.columns; ++c) {
      dx.At(row, c) = dy.At(image, c * pixels + row % pixels);
    }
  });
}

template <typename T>
void Concatenate(const KernelCall<T>& call) {
  const Joined<T> joined{call.reads[0], call.reads[1], call.writes[0]};
  joined.ForEachBlock(call.Count(0),
                      [](T* y, const T* part, uint64_t n) { std::copy_n(part, n, y); });
}

template <typename T>
void Separate(const KernelCall<T>& call) {
  const Joined<T> joined{call.writes[0], call.writes[1], call.reads[0]};
  joined.ForEachBlock(call.Count(0),
                      [](const T* y, T* part, uint64_t n) { std::copy_n(y, n, part); });
}

template <typename T>
void Modulate(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& e = call.reads[1];
  const Operand<T>& y = call.writes[0];
  CHECK_EQ(e.columns, 2 * x.columns);
  CHECK_EQ(e.rows * call.Count(0), x.rows);
  ForEachPixel(x.rows, call.Count(0), [&](uint64_t image, uint64_t row) {
    for (uint64_t c = 0; c < x.columns; ++c) {
      y.At(row, c) = x.At(row, c) * (1 + e.At(image, 2 * c)) + e.At(image, 2 * c + 1);
    }
  });
}

template <typename T>
void ModulateBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& e = call.reads[2];
  const Operand<T>& dx = call.writes[0];
  const Operand<T>& de = call.writes[1];
  CHECK_EQ(de.elements(), e.elements());
  for (uint64_t i = 0; i < de.rows; ++i) std::fill(de.Row(i), de.Row(i) + de.columns, T(0));
  ForEachPixel(x.rows, call.Count(0), [&](uint64_t image, uint64_t row) {
    for (uint64_t c = 0; c < x.columns; ++c) {
      const T gradient = dy.At(row, c);
      dx.At(row, c) = gradient * (1 + e.At(image, 2 * c));
      de.At(image, 2 * c) += gradient * x.At(row, c);
      de.At(image, 2 * c + 1) += gradient;
    }
  });
}

REHEARSE_INSTANTIATE(Im2Col);
REHEARSE_INSTANTIATE(Col2Im);
REHEARSE_INSTANTIATE(MaxPool);
REHEARSE_INSTANTIATE(MaxPoolBackward);
REHEARSE_INSTANTIATE(Upsample);
REHEARSE_INSTANTIATE(UpsampleBackward);
REHEARSE_INSTANTIATE(Flatten);
REHEARSE_INSTANTIATE(FlattenBackward);
REHEARSE_INSTANTIATE(Concatenate);
REHEARSE_INSTANTIATE(Separate);
REHEARSE_INSTANTIATE(Modulate);
REHEARSE_INSTANTIATE(ModulateBackward);

}  // namespace rehearse::kernels
