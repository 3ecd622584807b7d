// An array of plain values that only grows at its end. It grows by std::realloc, which moves the
// pages of large blocks instead of copying them, so tables of hundreds of megabytes are never in
// memory twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

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
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  void Grow(size_t wanted) {
    const size_t capacity = std::max({wanted, 2 * capacity_, size_t{16}});
    void* const data = std::realloc(static_cast<void*>(data_.get()), capacity * sizeof(T));
    if (data == nullptr) throw std::bad_alloc();
    static_cast<void>(data_.release());  // realloc has it
    data_.reset(static_cast<T*>(data));
    capacity_ = capacity;
  }

  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace rehearse
