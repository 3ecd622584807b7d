// Memory that was freed and that a program keeps for its next use.
//
// Work that plays scenarios of very different sizes says where it has just freed much, or is about
// to take much. What a program then does is its own business (tools/heap.h); a library that is a
// part of somebody else's program does nothing.
#pragma once

namespace rehearse {

// What is done from now on, in the calling thread. Before there are other threads.
void SetSpareMemoryHandler(void (*handler)());

void OfferSpareMemory();

}  // namespace rehearse
