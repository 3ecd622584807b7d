// What SIGINT and SIGTERM do: the program ends with one line on standard error and the exit code
// that shells give such an end, 130 or 143; but not in the middle of work that must not be left
// half done.
#pragma once

namespace rehearse {

// From now on. A signal that the program was started to ignore (nohup) stays ignored.
void EndOnSignals();

// While one lives, in any thread, these signals wait; the last one's end is the program's, then. A
// second signal does not wait. For moments, such as giving files their names.
class Uninterrupted {
 public:
  Uninterrupted() noexcept;
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

}  // namespace rehearse
