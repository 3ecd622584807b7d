#include "sim/base/interruption.h"

#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/say.h"

namespace rehearse {
namespace interruption_test {

using ::testing::ExitedWithCode;

TEST(InterruptionDeathTest, ASignalIsALineAndTheShellsExitCode) {
  const auto end_on = [](int signal) {
    EndOnSignals();
    raise(signal);
    _exit(0);
  };
  EXPECT_EXIT(end_on(SIGINT), ExitedWithCode(128 + SIGINT), "^rehearse: interrupted\n$");
  EXPECT_EXIT(end_on(SIGTERM), ExitedWithCode(128 + SIGTERM), "^rehearse: ended by SIGTERM\n$");
}

TEST(InterruptionDeathTest, AnIgnoredSignalStaysIgnored) {
  EXPECT_EXIT(
      {
        signal(SIGINT, SIG_IGN);
        EndOnSignals();
        raise(SIGINT);
        _exit(7);
      },
      ExitedWithCode(7), "");
}

TEST(InterruptionDeathTest, WorkThatMustNotBeHalfDoneIsDoneFirst) {
  const auto work = [] {
    EndOnSignals();
    {
      const Uninterrupted outer;
      {
        const Uninterrupted inner;
        raise(SIGTERM);
      }
      Say("done");
    }
    _exit(0);
  };
  EXPECT_EXIT(work(), ExitedWithCode(128 + SIGTERM),
              "^rehearse: done\nrehearse: ended by SIGTERM\n$");
}

TEST(InterruptionDeathTest, WorkOfAnotherThreadIsWaitedForAndNoneBegins) {
  const auto work = [] {
    EndOnSignals();
    std::thread late;
    {
      const Uninterrupted uninterrupted;
      raise(SIGTERM);
      late = std::thread([] {
        const Uninterrupted too_late;
        Say("begun");
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      Say("done");
    }
    _exit(0);
  };
  EXPECT_EXIT(work(), ExitedWithCode(128 + SIGTERM),
              "^rehearse: done\nrehearse: ended by SIGTERM\n$");
}

TEST(InterruptionDeathTest, ASecondSignalDoesNotWait) {
  const auto work = [] {
    EndOnSignals();
    const Uninterrupted uninterrupted;
    raise(SIGINT);
    raise(SIGINT);
    _exit(0);
  };
  EXPECT_EXIT(work(), ExitedWithCode(128 + SIGINT), "interrupted");
}

TEST(InterruptionDeathTest, StoppableWorkIsAskedAndThenKeepsWhatItHas) {
  const auto work = [] {
    EndOnSignals();
    const Stoppable stoppable;
    if (IsStopAsked() || StopCode() != 0) _exit(1);
    raise(SIGINT);
    if (!IsStopAsked()) _exit(1);
    {
      const Uninterrupted written;  // what there is
      Say(StopWords(), ": kept");
    }
    _exit(StopCode());
  };
  EXPECT_EXIT(work(), ExitedWithCode(128 + SIGINT), "^rehearse: interrupted: kept\n$");
}

TEST(InterruptionDeathTest, ASecondSignalEndsStoppableWork) {
  const auto work = [] {
    EndOnSignals();
    const Stoppable stoppable;
    raise(SIGTERM);
    raise(SIGTERM);
    _exit(0);
  };
  EXPECT_EXIT(work(), ExitedWithCode(128 + SIGTERM), "^rehearse: ended by SIGTERM\n$");
}

TEST(InterruptionDeathTest, WorkThatIsNoLongerStoppableEnds) {
  const auto work = [] {
    EndOnSignals();
    { const Stoppable stoppable; }
    raise(SIGINT);
    _exit(0);
  };
  EXPECT_EXIT(work(), ExitedWithCode(128 + SIGINT), "^rehearse: interrupted\n$");
}

}  // namespace interruption_test
}  // namespace rehearse
