// What the program says beside its results: lines on standard error.
//
// To say something must never change what is being done: where standard error is full, closed, or
// a pipe that nobody reads, the words are lost, and there is neither an exception nor a signal. A
// line is one write, so that those of several threads and processes do not mix.
#pragma once

#include <string_view>

namespace rehearse {

// "rehearse: ", the message and what else there is of it, and the end of the line.
void Say(std::string_view message, std::string_view rest = {}) noexcept;
// The text as it is: lines of a form of their own.
void SayAsItIs(std::string_view text) noexcept;
// On a terminal: a line that stands in place until the next replaces it ("" takes it away), or
// until something is said.
void SayInPlace(std::string_view line) noexcept;

// Standard streams that are closed lead nowhere from now on, and writing to them fails. Otherwise
// the next file that is opened takes their number, and what is said is written into it. For main(),
// before anything is opened.
void OccupyClosedStreams() noexcept;

}  // namespace rehearse
