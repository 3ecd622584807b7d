#include "sim/base/interruption.h"

#include <atomic>
#include <csignal>

#include <unistd.h>

#include "sim/base/say.h"

namespace rehearse {
namespace {

// What a signal handler may touch; it does nothing else but make system calls.
std::atomic<int> signal_to_end_on = 0;
std::atomic<int> work_in_progress = 0;  // threads that must not be interrupted
std::atomic<int> stoppable_work = 0;
std::atomic<bool> begins_a_line = true;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

constexpr int kEndedBySignal = 128;  // as shells count
thread_local int depth = 0;          // of this thread's Uninterrupted

const char* WordsFor(int signal) { return signal == SIGTERM ? "ended by SIGTERM" : "interrupted"; }

[[noreturn]] void End(int signal) {
  if (!begins_a_line) SayAsItIs("\n");  // after the terminal's ^C, or a line of progress
  Say(WordsFor(signal));
  _exit(kEndedBySignal + signal);
}

// The signal is noted before the work is looked at, and Uninterrupted() does the reverse, so that
// one of the two sees the other.
void OnSignal(int signal) {
  const int earlier = signal_to_end_on.exchange(signal);
  if ((work_in_progress == 0 && stoppable_work == 0) || earlier != 0) End(signal);
}

void Leave() {
  if (--work_in_progress == 0 && signal_to_end_on != 0 && stoppable_work == 0)
    End(signal_to_end_on);
}

}  // namespace

void EndOnSignals() {
  begins_a_line = isatty(STDERR_FILENO) != 1;
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

Stoppable::Stoppable() noexcept { ++stoppable_work; }
Stoppable::~Stoppable() { --stoppable_work; }

bool IsStopAsked() noexcept { return signal_to_end_on != 0; }

int StopCode() noexcept {
  const int signal = signal_to_end_on;
  return signal == 0 ? 0 : kEndedBySignal + signal;
}

const char* StopWords() noexcept { return WordsFor(signal_to_end_on); }

Uninterrupted::Uninterrupted() noexcept {
  if (depth++ > 0) return;
  ++work_in_progress;
  if (signal_to_end_on == 0 || stoppable_work > 0) return;
  Leave();
  while (true) pause();  // others are finishing; then the program ends
}

Uninterrupted::~Uninterrupted() {
  if (--depth == 0) Leave();
}

}  // namespace rehearse
