// What the program says beside its results: lines on standard error.
//
// Saying something must never change what is being done: where standard error is full, closed, or a
// pipe that nobody reads, the words are lost, without an exception or a signal. A line is one
// write, so that lines of several threads and processes do not mix.
#pragma once

#include <string_view>

namespace rehearse {

// Prints "rehearse: ", the message, the rest of it, and the end of the line.
void Say(std::string_view message, std::string_view rest = {}) noexcept;
// Prints the text as it is, for lines with a form of their own.
void SayAsItIs(std::string_view text) noexcept;
// On a terminal: a line that stands in place until the next replaces it ("" takes it away), or
// until something is said.
void SayInPlace(std::string_view line) noexcept;

// Closed standard streams lead nowhere from now on, and writing to them fails. Otherwise the next
// file opened would take their number, and what is said would be written into it. For main(),
// before anything is opened.
void OccupyClosedStreams() noexcept;

}  // namespace rehearse
