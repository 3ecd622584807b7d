// Where the page's simulator has its objects: it makes and forgets well over 100,000 small ones for
// each step that it plays. They come from pages of one size each and go back to a list of their
// size, which is sooner done than emscripten's malloc; pages are kept for the next step.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t kPage = 65536;
constexpr size_t kPagesAtOnce = 16;
constexpr size_t kStep = 16;  // sizes are multiples of it
constexpr size_t kLargest = 512;
constexpr size_t kClasses = kLargest / kStep + 1;
constexpr size_t kPages = 65536;  // of all addresses

struct Free {
  Free* next;
};

struct Class {
  Free* free = nullptr;
  char* fresh = nullptr;  // of its newest page, what was never used
  char* end = nullptr;
};

std::array<Class, kClasses> classes;
std::array<uint8_t, kPages> class_of_page;  // 0: of malloc
char* pages = nullptr;                      // not of any class yet
char* pages_end = nullptr;

void* Malloc(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* NewPage(size_t index) {
  if (pages == pages_end) {
    pages = static_cast<char*>(std::aligned_alloc(kPage, kPage * kPagesAtOnce));
    if (pages == nullptr) {
      pages_end = nullptr;
      throw std::bad_alloc();
    }
    pages_end = pages + kPage * kPagesAtOnce;
  }
  class_of_page[reinterpret_cast<uintptr_t>(pages) / kPage] = static_cast<uint8_t>(index);
  const size_t size = index * kStep;
  Class& own = classes[index];
  char* const first = pages;
  own.fresh = first + size;
  own.end = first + kPage / size * size;
  pages += kPage;
  return first;
}

}  // namespace

void* operator new(size_t size) {
  if (size > kLargest) return Malloc(size);
  const size_t index = size == 0 ? 1 : (size + kStep - 1) / kStep;
  Class& own = classes[index];
  if (Free* const first = own.free) {
    own.free = first->next;
    return first;
  }
  if (own.fresh == own.end) return NewPage(index);
  char* const first = own.fresh;
  own.fresh += index * kStep;
  return first;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  const uint8_t index = class_of_page[reinterpret_cast<uintptr_t>(memory) / kPage];
  if (index == 0) {
    std::free(memory);
    return;
  }
  auto* const own = static_cast<Free*>(memory);
  own->next = classes[index].free;
  classes[index].free = own;
}

void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
