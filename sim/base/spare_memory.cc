#include "sim/base/spare_memory.h"

namespace rehearse {
namespace {

void (*handler_of_program)() = nullptr;

}  // namespace

void SetSpareMemoryHandler(void (*handler)()) { handler_of_program = handler; }

void OfferSpareMemory() {
  if (handler_of_program != nullptr) handler_of_program();
}

}  // namespace rehearse
