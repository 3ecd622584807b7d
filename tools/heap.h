// The memory that the program allocates from. It is linked into programs only, never the library.
#pragma once

namespace rehearse {

// Keeps what is freed for the next use, instead of returning it to the kernel, which would hand out
// zeroed pages again. jemalloc, where the program is linked to it, does that by itself; glibc's
// malloc is told to. But a quarter of the machine's memory is enough to keep: what is beyond that
// is returned when it is offered (sim/base/spare_memory.h). This is called once, first thing in
// main.
void KeepFreedMemory();

}  // namespace rehearse
