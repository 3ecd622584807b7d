// An array of plain values that only grows at its end. Large ones grow by having their pages moved
// (Linux's mremap), which allocators that keep what is freed do not do: so tables of hundreds of
// megabytes are never in memory twice, nor copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rehearse {

template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return data_.get(); }
  const T* begin() const { return data_.get(); }
  const T* end() const { return data_.get() + size_; }
  const T& operator[](size_t i) const { return data_.get()[i]; }
  T& operator[](size_t i) { return data_.get()[i]; }

  void Add(const T& value) {
    const T copy = value;  // which may lie in this array
    if (size_ == capacity_) Grow(size_ + 1);
    new (data_.get() + size_++) T(copy);
  }
  void Add(const std::vector<T>& values) {
    if (size_ + values.size() > capacity_) Grow(size_ + values.size());
    std::uninitialized_copy(values.begin(), values.end(), data_.get() + size_);
    size_ += values.size();
  }

 private:
#ifdef __linux__
  static constexpr size_t kLarge = size_t{16} << 20;  // bytes
#else
  static constexpr size_t kLarge = ~size_t{0};
#endif

  struct Free {
    size_t bytes = 0;

    void operator()(T* data) const {
#ifdef __linux__
      if (bytes >= kLarge) {
        munmap(data, bytes);
        return;
      }
#endif
      std::free(data);
    }
  };

  void Grow(size_t wanted) {
    const size_t capacity = std::max({wanted, 2 * capacity_, size_t{16}});
    const size_t bytes = capacity * sizeof(T);
    void* data = nullptr;
    if (bytes < kLarge) {
      data = std::realloc(static_cast<void*>(data_.get()), bytes);
      if (data == nullptr) throw std::bad_alloc();
      static_cast<void>(data_.release());  // realloc has it
    } else {
      data = MovedPages(bytes);
    }
    capacity_ = capacity;
    data_ = std::unique_ptr<T, Free>(static_cast<T*>(data), Free{bytes});
  }

  // The data in so many bytes of pages of their own.
  void* MovedPages([[maybe_unused]] size_t bytes) {
#ifdef __linux__
    const size_t before = capacity_ * sizeof(T);
    const bool has_pages = before >= kLarge;
    void* const data = has_pages ? mremap(data_.get(), before, bytes, MREMAP_MAYMOVE)
                                 : mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    if (has_pages)
      static_cast<void>(data_.release());  // they have moved
    else if (size_ > 0)
      std::uninitialized_copy(begin(), end(), static_cast<T*>(data));
    return data;
#else
    throw std::bad_alloc();
#endif
  }

  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace rehearse
