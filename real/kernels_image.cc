// Convolutional networks: a convolution is im2col and a product; pooling; up-sampling.
//
// An image is a row of channels × height × width. Im2Col makes a row for each output pixel (image by image,
// row by row) with the channels × kernel × kernel inputs that it sees, zero outside the image.
#include <algorithm>
#include <utility>

#include "real/kernel_rows.h"
#include "sim/error.h"

namespace rehearse::kernels {
namespace {

struct Windows {
  uint64_t channels, height, width, kernel, stride, padding;

  uint64_t OutHeight() const { return (height + 2 * padding - kernel) / stride + 1; }
  uint64_t OutWidth() const { return (width + 2 * padding - kernel) / stride + 1; }
};

// Calls visit(element of the image, element of the row of columns) for every input that is inside.
template <typename T, typename Visit>
void ForEachWindow(const KernelCall<T>& call, const Operand<T>& image, const Operand<T>& columns,
                   Visit visit) {
  const Windows w{call.Count(0), call.Count(1), call.Count(2),
                  call.Count(3), call.Count(4), call.Count(5)};
  CHECK_EQ(image.columns, w.channels * w.height * w.width);
  CHECK_EQ(columns.columns, w.channels * w.kernel * w.kernel);
  CHECK_EQ(columns.rows, image.rows * w.OutHeight() * w.OutWidth());
  uint64_t row = 0;
  for (uint64_t i = 0; i < image.rows; ++i) {
    for (uint64_t y = 0; y < w.OutHeight(); ++y) {
      for (uint64_t x = 0; x < w.OutWidth(); ++x, ++row) {
        T* window = columns.Row(row);
        for (uint64_t c = 0; c < w.channels; ++c) {
          for (uint64_t ky = 0; ky < w.kernel; ++ky) {
            for (uint64_t kx = 0; kx < w.kernel; ++kx, ++window) {
              const uint64_t from_y = y * w.stride + ky - w.padding;  // wraps around when outside
              const uint64_t from_x = x * w.stride + kx - w.padding;
              const bool inside = from_y < w.height && from_x < w.width;
              visit(inside ? image.Row(i) + (c * w.height + from_y) * w.width + from_x : nullptr,
                    window);
            }
          }
        }
      }
    }
  }
}

// Calls visit(top left element of the small image's pixel, large image's first of `factor`² elements, and
// the large image's width) for every pixel of the small image.
template <typename T, typename Visit>
void ForEachBlock(const Operand<T>& large, const Operand<T>& small, uint64_t channels,
                  uint64_t height, uint64_t width, uint64_t factor, Visit visit) {
  CHECK_EQ(small.columns, channels * height * width);
  CHECK_EQ(large.columns, small.columns * factor * factor);
  CHECK_EQ(large.rows, small.rows);
  for (uint64_t i = 0; i < small.rows; ++i) {
    T* pixel = small.Row(i);
    for (uint64_t y = 0; y < channels * height; ++y) {  // channels lie below each other
      T* line = large.Row(i) + y * factor * width * factor;
      for (uint64_t x = 0; x < width; ++x, ++pixel) visit(pixel, line + x * factor, width * factor);
    }
  }
}

template <typename T, typename Visit>
void ForEachPool(const KernelCall<T>& call, const Operand<T>& x, const Operand<T>& y, Visit visit) {
  const uint64_t window = call.Count(3);
  CHECK_EQ(call.Count(1) % window, 0u);
  CHECK_EQ(call.Count(2) % window, 0u);
  ForEachBlock(x, y, call.Count(0), call.Count(1) / window, call.Count(2) / window, window, visit);
}

// The first largest element of a window: its offset.
template <typename T>
uint64_t LargestAt(const T* block, uint64_t window, uint64_t width) {
  uint64_t best = 0;
  for (uint64_t y = 0; y < window; ++y) {
    for (uint64_t x = 0; x < window; ++x) {
      if (block[y * width + x] > block[best]) best = y * width + x;
    }
  }
  return best;
}

}  // namespace

template <typename T>
void Im2Col(const KernelCall<T>& call) {
  ForEachWindow(call, call.reads[0], call.writes[0],
                [](const T* pixel, T* column) { *column = pixel == nullptr ? T(0) : *pixel; });
}

template <typename T>
void Col2Im(const KernelCall<T>& call) {
  const Operand<T>& image = call.writes[0];
  for (uint64_t i = 0; i < image.rows; ++i) {
    std::fill(image.Row(i), image.Row(i) + image.columns, T(0));
  }
  ForEachWindow(call, image, call.reads[0], [](T* pixel, const T* column) {
    if (pixel != nullptr) *pixel += *column;
  });
}

template <typename T>
void MaxPool(const KernelCall<T>& call) {
  ForEachPool(call, call.reads[0], call.writes[0], [&](T* pixel, const T* block, uint64_t width) {
    *pixel = block[LargestAt(block, call.Count(3), width)];
  });
}

template <typename T>
void MaxPoolBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CHECK_EQ(dx.elements(), x.elements());
  for (uint64_t i = 0; i < dx.rows; ++i) std::fill(dx.Row(i), dx.Row(i) + dx.columns, T(0));
  // dX has X's shape: the element at the same place.
  CHECK(x.IsDense() && dx.IsDense());
  ForEachPool(call, x, dy, [&](const T* gradient, const T* block, uint64_t width) {
    const uint64_t at = LargestAt(block, call.Count(3), width);
    dx.data[block + at - x.data] += *gradient;
  });
}

template <typename T>
void Upsample(const KernelCall<T>& call) {
  ForEachBlock(call.writes[0], call.reads[0], call.Count(0), call.Count(1), call.Count(2), 2,
               [](const T* pixel, T* block, uint64_t width) {
                 block[0] = block[1] = block[width] = block[width + 1] = *pixel;
               });
}

template <typename T>
void UpsampleBackward(const KernelCall<T>& call) {
  ForEachBlock(call.reads[0], call.writes[0], call.Count(0), call.Count(1), call.Count(2), 2,
               [](T* pixel, const T* block, uint64_t width) {
                 *pixel = block[0] + block[1] + block[width] + block[width + 1];
               });
}

REHEARSE_INSTANTIATE(Im2Col);
REHEARSE_INSTANTIATE(Col2Im);
REHEARSE_INSTANTIATE(MaxPool);
REHEARSE_INSTANTIATE(MaxPoolBackward);
REHEARSE_INSTANTIATE(Upsample);
REHEARSE_INSTANTIATE(UpsampleBackward);

}  // namespace rehearse::kernels
