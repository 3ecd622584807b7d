// What SIGINT and SIGTERM do: the program ends with one line on standard error and the exit code
// that shells use for this, 130 or 143, but not in the middle of work that must not be left half
// done.
//
// Long work that can keep what it has is stopped instead: it holds a Stoppable, asks IsStopAsked()
// now and then, and throws Stopped or returns what there is.
#pragma once

#include <stdexcept>

namespace rehearse {

// From now on. A signal that the program was started to ignore (nohup) stays ignored.
void EndOnSignals();

// While one lives, the first signal only asks the work to stop; a second one ends the program at
// once. Keep it until the results so far are printed and written.
class Stoppable {
 public:
  Stoppable() noexcept;
  ~Stoppable();
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;
};
bool IsStopAsked() noexcept;
// What the program is to return after a signal, 130 or 143; 0 if there was none.
int StopCode() noexcept;
// "interrupted", or "ended by SIGTERM".
const char* StopWords() noexcept;

// Thrown through work that is to stop. what() says what became of it, for people, after
// "interrupted: ".
class Stopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// While one lives, in any thread, these signals wait; the program ends when the last one does. A
// second signal does not wait. For short moments, such as giving files their names.
class Uninterrupted {
 public:
  Uninterrupted() noexcept;
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

}  // namespace rehearse
